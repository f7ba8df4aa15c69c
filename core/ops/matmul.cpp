#include "tessera/core/ops/matmul.h"

#include <algorithm>
#include <cstring>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/storage16.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kTileRows = 256;
constexpr int64_t kForkWork = 1 << 20;  // multiply-adds below which one thread is quicker

/// How K is cut: pieces only where the rows give few tiles, as for a weight gradient. A function of the shape alone.
struct Cut {
  int64_t tiles, chunks, depth;
  Cut(int64_t m, int64_t k) : tiles((m + kTileRows - 1) / kTileRows) {
    constexpr int64_t kLeastDepth = 2048, kMostTasks = 64;
    const int64_t wanted = std::min((k + kLeastDepth - 1) / kLeastDepth, std::max<int64_t>(1, kMostTasks / tiles));
    depth = ((k + wanted - 1) / wanted + 63) / 64 * 64;
    chunks = (k + depth - 1) / depth;
  }
};

template <class T>
const void* at(const void* base, int64_t offset) {
  return static_cast<const T*>(base) + offset;
}

template <class T>
void multiply_tile(GemmArgs g, int64_t row, int64_t k0, int64_t depth, T* c) {
  g.a = at<T>(g.a, g.transpose_a ? k0 * g.lda + row : row * g.lda + k0);
  g.b = at<T>(g.b, g.transpose_b ? k0 : k0 * g.ldb);
  g.c = c + row * g.ldc;
  g.m = std::min(kTileRows, g.m - row);
  g.k = depth;
  if constexpr (sizeof(T) == 4)
    SmallGemmKernel::fits(g.m, g.n, g.k) ? run<SmallGemmKernel>(Device::cpu, g) : onednn_sgemm(g);
  else
    run<DgemmKernel>(Device::cpu, g);
}

struct Finish {
  const void* bias = nullptr;
  Activation activation = Activation::none;

  bool any() const { return bias != nullptr || activation != Activation::none; }
  /// Of `rows` whole rows at c.
  template <class T>
  void operator()(T* c, int64_t rows, int64_t width) const {
    if (any()) run<EpilogueKernel>(Device::cpu, {sizeof(T) == 8, activation, rows, width, c, bias});
  }
};

template <class T>
void multiply(const GemmArgs& g, const Finish& finish) {
  T* c = static_cast<T*>(g.c);
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    std::memset(c, 0, size_t(g.m * g.n) * sizeof(T));
    finish(c, g.m, g.n);
    return;
  }
  const Cut cut(g.m, g.k);
  const int64_t size = g.m * g.n, tasks = cut.tiles * cut.chunks;
  // The first chunk goes straight to C, the others beside it.
  Scratch<T> rest((cut.chunks - 1) * size);
  const int64_t task_work = std::min(kTileRows, g.m) * g.n * std::min(cut.depth, g.k);
  parallel_for(tasks, kForkWork / task_work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t chunk = task / cut.tiles, row = task % cut.tiles * kTileRows, k0 = chunk * cut.depth;
      multiply_tile<T>(g, row, k0, std::min(cut.depth, g.k - k0), chunk == 0 ? c : rest.data() + (chunk - 1) * size);
      if (cut.chunks == 1) finish(c + row * g.n, std::min(kTileRows, g.m - row), g.n);
    }
  });
  if (cut.chunks == 1) return;
  const auto piece = [&](int64_t chunk) { return chunk == 0 ? c : rest.data() + (chunk - 1) * size; };
  parallel_for(g.m, (1 << 14) / g.n + 1, [&](int64_t begin, int64_t end) {
    for (int64_t step = 1; step < cut.chunks; step *= 2)
      for (int64_t chunk = 0; chunk + step < cut.chunks; chunk += 2 * step) {
        T* to = piece(chunk);
        const T* from = piece(chunk + step);
        for (int64_t i = begin * g.n; i < end * g.n; ++i) to[i] += from[i];
      }
    finish(c + begin * g.n, end - begin, g.n);
  });
}

/// Each product of a batch in tiles of its own; K is not cut.
template <class T>
void multiply_batch(const GemmArgs& g, int64_t batch) {
  if (batch == 0 || g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    std::memset(g.c, 0, size_t(batch * g.m * g.n) * sizeof(T));
    return;
  }
  const int64_t tiles = (g.m + kTileRows - 1) / kTileRows, task_work = std::min(kTileRows, g.m) * g.n * g.k;
  parallel_for(batch * tiles, kForkWork / task_work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / tiles;
      GemmArgs one = g;
      one.a = at<T>(g.a, b * g.m * g.k);
      one.b = at<T>(g.b, b * g.k * g.n);
      multiply_tile<T>(one, task % tiles * kTileRows, 0, g.k, static_cast<T*>(g.c) + b * g.m * g.n);
    }
  });
}

struct Sizes {
  int64_t m, n, k;
};

/// Checks what matmul and batched_matmul share. `first` is the first dimension of a matrix.
Sizes checked_sizes(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb, int first) {
  check(a.dtype() == b.dtype(), "{}: a is {} but b is {}", op, a.dtype(), b.dtype());
  check<Unsupported>(a.dtype() == DType::f32 || a.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     a.dtype());
  const int64_t m = a.dim(first + (ta ? 1 : 0)), k = a.dim(first + (ta ? 0 : 1)), n = b.dim(first + (tb ? 0 : 1)),
                k_of_b = b.dim(first + (tb ? 1 : 0));
  check(k_of_b == k, "{}: a has shape {}{} and b {}{}, the inner sizes {} and {} differ", op, a.shape(),
        ta ? " transposed" : "", b.shape(), tb ? " transposed" : "", k, k_of_b);
  return {m, n, k};
}

GemmArgs args_of(const Tensor& a, bool ta, const Tensor& b, bool tb, const Sizes& s, Tensor& out) {
  return {a.dtype() == DType::f64,
          ta,
          tb,
          s.m,
          s.n,
          s.k,
          a.raw(),
          std::max<int64_t>(1, a.dim(-1)),
          b.raw(),
          std::max<int64_t>(1, b.dim(-1)),
          out.mutable_raw(),
          std::max<int64_t>(1, s.n)};
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  if (is_storage16(a.dtype()) && b.dtype() == a.dtype())
    return through_f32(a, b, [&](const Tensor& x, const Tensor& y) {
      MatmulOptions wide = options;
      wide.bias = widened(options.bias);
      return matmul(x, y, wide);
    });
  check(a.ndim() == 2 && b.ndim() == 2, "matmul: a has shape {} and b {} but both need two dimensions", a.shape(),
        b.shape());
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const Sizes sizes = checked_sizes("matmul", a, ta, b, tb, 0);
  const Tensor& bias = options.bias;
  if (bias.defined())
    check(bias.ndim() == 1 && bias.dim(0) == sizes.n && bias.dtype() == a.dtype(),
          "matmul: bias is {} {} but needs to be {} [{}]", bias.dtype(), bias.shape(), a.dtype(), sizes.n);
  const Activation activation = options.activation;
  Tensor out = Tensor::empty(Shape{sizes.m, sizes.n}, a.dtype(), a.device());
  const GemmArgs args = args_of(a, ta, b, tb, sizes, out);
  const Finish finish{bias.defined() ? bias.raw() : nullptr, activation};
  args.is_double ? multiply<double>(args, finish) : multiply<float>(args, finish);
  record("matmul", out, {a, b, bias},
         [a = Saved(a), b = Saved(b), y = activation == Activation::none ? Saved() : Saved(out), ta, tb, activation](
             const Tensor& grad_out, Gradients& into) {
           const Tensor grad = activation_gradient(activation, y.get(), grad_out);
           if (into.wants(0))
             into.add(0, ta ? matmul(b.get(), grad, {.transpose_a = tb, .transpose_b = true})
                            : matmul(grad, b.get(), {.transpose_b = !tb}));
           if (into.wants(1))
             into.add(1, tb ? matmul(grad, a.get(), {.transpose_a = true, .transpose_b = ta})
                            : matmul(a.get(), grad, {.transpose_a = !ta}));
           if (into.wants(2)) into.add(2, sum_rows(grad));
         });
  return out;
}

Tensor batched_matmul(const Tensor& a, const Tensor& b, BatchedOptions options) {
  if (is_storage16(a.dtype()) && b.dtype() == a.dtype())
    return through_f32(a, b, [&](const Tensor& x, const Tensor& y) { return batched_matmul(x, y, options); });
  check(a.ndim() == 3 && b.ndim() == 3 && a.dim(0) == b.dim(0),
        "batched_matmul: a has shape {} and b {} but need to be [B, M, K] and [B, K, N]", a.shape(), b.shape());
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const Sizes sizes = checked_sizes("batched_matmul", a, ta, b, tb, 1);
  Tensor out = Tensor::empty(Shape{a.dim(0), sizes.m, sizes.n}, a.dtype(), a.device());
  const GemmArgs args = args_of(a, ta, b, tb, sizes, out);
  args.is_double ? multiply_batch<double>(args, a.dim(0)) : multiply_batch<float>(args, a.dim(0));
  record("batched_matmul", out, {a, b}, [a = Saved(a), b = Saved(b), ta, tb](const Tensor& grad, Gradients& into) {
    if (into.wants(0))
      into.add(0, ta ? batched_matmul(b.get(), grad, {.transpose_a = tb, .transpose_b = true})
                     : batched_matmul(grad, b.get(), {.transpose_b = !tb}));
    if (into.wants(1))
      into.add(1, tb ? batched_matmul(grad, a.get(), {.transpose_a = true, .transpose_b = ta})
                     : batched_matmul(a.get(), grad, {.transpose_a = !ta}));
  });
  return out;
}

}  // namespace tessera
