#include "tessera/core/ops/matmul.h"

#include <algorithm>
#include <cstring>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/matmul_kernels.h"
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
    onednn_sgemm(g);
  else
    run<DgemmKernel>(Device::cpu, g);
}

template <class T>
void multiply(const GemmArgs& g) {
  T* c = static_cast<T*>(g.c);
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    std::memset(c, 0, size_t(g.m * g.n) * sizeof(T));
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
    }
  });
  if (cut.chunks == 1) return;
  const auto piece = [&](int64_t chunk) { return chunk == 0 ? c : rest.data() + (chunk - 1) * size; };
  parallel_for(size, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t step = 1; step < cut.chunks; step *= 2)
      for (int64_t chunk = 0; chunk + step < cut.chunks; chunk += 2 * step) {
        T* to = piece(chunk);
        const T* from = piece(chunk + step);
        for (int64_t i = begin; i < end; ++i) to[i] += from[i];
      }
  });
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options) {
  check(a.ndim() == 2 && b.ndim() == 2, "matmul: a has shape {} and b {} but both need two dimensions", a.shape(), b.shape());
  check(a.dtype() == b.dtype(), "matmul: a is {} but b is {}", a.dtype(), b.dtype());
  check<Unsupported>(a.dtype() == DType::f32 || a.dtype() == DType::f64, "matmul: dtype {} is not supported, use f32 or f64",
                     a.dtype());
  const bool ta = options.transpose_a, tb = options.transpose_b;
  const int64_t m = a.dim(ta ? 1 : 0), k = a.dim(ta ? 0 : 1), n = b.dim(tb ? 0 : 1);
  check(b.dim(tb ? 1 : 0) == k, "matmul: a has shape {}{} and b {}{}, the inner sizes {} and {} differ", a.shape(),
        ta ? " transposed" : "", b.shape(), tb ? " transposed" : "", k, b.dim(tb ? 1 : 0));
  Tensor out = Tensor::empty(Shape{m, n}, a.dtype(), a.device());
  const GemmArgs args{a.dtype() == DType::f64, ta, tb, m, n, k, a.raw(), std::max<int64_t>(1, a.dim(1)), b.raw(),
                      std::max<int64_t>(1, b.dim(1)), out.mutable_raw(), std::max<int64_t>(1, n)};
  args.is_double ? multiply<double>(args) : multiply<float>(args);
  record("matmul", out, {a, b}, [a = Saved(a), b = Saved(b), ta, tb](const Tensor& grad, Gradients& into) {
    if (into.wants(0))
      into.add(0, ta ? matmul(b.get(), grad, {.transpose_a = tb, .transpose_b = true})
                     : matmul(grad, b.get(), {.transpose_b = !tb}));
    if (into.wants(1))
      into.add(1, tb ? matmul(grad, a.get(), {.transpose_a = true, .transpose_b = ta})
                     : matmul(a.get(), grad, {.transpose_a = !ta}));
  });
  return out;
}

}  // namespace tessera
