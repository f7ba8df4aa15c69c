#include "tessera/core/ops/index.h"

#include <cstring>
#include <type_traits>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

template <class F>
decltype(auto) with_ids(const char* op, const Tensor& ids, F&& f) {
  check(ids.ndim() == 1, "{}: ids have shape {} but need one dimension", op, ids.shape());
  switch (ids.dtype()) {
    case DType::i32: return f(ids.data<int32_t>());
    case DType::i64: return f(ids.data<int64_t>());
    default: fail("{}: ids are {} but need to be i32 or i64", op, ids.dtype());
  }
}

template <class I>
void check_range(const char* op, const I* ids, int64_t count, int64_t bound) {
  for (int64_t i = 0; i < count; ++i)
    check(ids[i] >= 0 && int64_t(ids[i]) < bound, "{}: ids[{}] is {} but needs to be in [0, {})", op, i, ids[i], bound);
}

/// Each row of `into` gets the sum of the rows of grad that name it: a counting sort gathers their places, in order, so
/// that one thread adds each row up.
template <class T, class I>
void add_rows(const I* ids, int64_t count, const T* grad, T* into, int64_t rows, int64_t width) {
  if (width == 0) return;
  Scratch<int64_t> start(rows + 1), place(count);
  std::memset(start.data(), 0, size_t(rows + 1) * sizeof(int64_t));
  for (int64_t i = 0; i < count; ++i) ++start[int64_t(ids[i]) + 1];
  for (int64_t r = 0; r < rows; ++r) start[r + 1] += start[r];
  for (int64_t i = 0; i < count; ++i) place[start[int64_t(ids[i])]++] = i;
  // Now start[r] is the end of row r.
  const int64_t work = (count / (rows + 1) + 1) * width + 1;
  parallel_for(rows, (1 << 15) / work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* out = into + r * width;
      int64_t at = r > 0 ? start[r - 1] : 0;
      if (at == start[r]) {
        std::memset(out, 0, size_t(width) * sizeof(T));
        continue;
      }
      std::memcpy(out, grad + place[at] * width, size_t(width) * sizeof(T));
      for (++at; at < start[r]; ++at) {
        const T* from = grad + place[at] * width;
        for (int64_t j = 0; j < width; ++j) out[j] += from[j];
      }
    }
  });
}

template <class T>
void scan(const T* x, T* out, const Lines& lines, bool reverse) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  const int64_t n = lines.length, inner = lines.inner, work = n + 1;
  parallel_for(lines.outer * inner, (1 << 15) / work + 1, [=](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t base = line / inner * n * inner + line % inner;
      Sum sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = base + (reverse ? n - 1 - i : i) * inner;
        sum += Sum(x[at]);
        out[at] = T(sum);
      }
    }
  });
}

Tensor scanned(const Tensor& x, int dim, bool reverse) {
  const Lines lines = lines_of("cumsum", x.shape(), dim);
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  switch (x.dtype()) {
    case DType::f32: scan(x.data<float>(), out.mutable_data<float>(), lines, reverse); break;
    case DType::f64: scan(x.data<double>(), out.mutable_data<double>(), lines, reverse); break;
    case DType::i32: scan(x.data<int32_t>(), out.mutable_data<int32_t>(), lines, reverse); break;
    case DType::i64: scan(x.data<int64_t>(), out.mutable_data<int64_t>(), lines, reverse); break;
    default: fail<Unsupported>("cumsum: dtype {} is not supported, use f32, f64, i32 or i64", x.dtype());
  }
  return out;
}

}  // namespace

Tensor index_select(const Tensor& x, const Tensor& ids) {
  check(x.ndim() >= 1, "index_select: x is a scalar and has no rows");
  const int64_t rows = x.dim(0), count = ids.numel(), width = rows == 0 ? 0 : x.numel() / rows,
                bytes = width * int64_t(size_of(x.dtype()));
  Tensor out = Tensor::empty(x.shape().with(0, count), x.dtype(), x.device());
  with_ids("index_select", ids, [&](const auto* id) {
    check_range("index_select", id, count, rows);
    const char* from = static_cast<const char*>(x.raw());
    char* to = static_cast<char*>(out.mutable_raw());
    if (bytes == 0) return;
    parallel_for(count, (1 << 16) / (bytes + 16) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from + int64_t(id[i]) * bytes, size_t(bytes));
    });
  });
  record("index_select", out, {x}, [ids = Saved(ids), shape = x.shape()](const Tensor& grad, Gradients& into) {
    Tensor result = Tensor::empty(shape, grad.dtype(), grad.device());
    with_ids("index_select", ids.get(), [&](const auto* id) {
      with_float(grad.dtype(), "index_select", [&]<class T>() {
        const int64_t n = shape[0];
        add_rows(id, grad.dim(0), grad.data<T>(), result.mutable_data<T>(), n, n == 0 ? 0 : shape.numel() / n);
      });
    });
    into.add(0, std::move(result));
  });
  return out;
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  check(classes >= 0, "one_hot: {} classes asked but needs 0 or more", classes);
  const int64_t count = ids.numel();
  Tensor out = zeros(Shape{count, classes}, dtype, ids.device());
  with_ids("one_hot", ids, [&](const auto* id) {
    check_range("one_hot", id, count, classes);
    with_any(dtype, [&]<class T>() {
      T one;
      if constexpr (sizeof(T) == 2)
        one = T(1.0f);
      else
        one = T(1);
      T* to = out.mutable_data<T>();
      for (int64_t i = 0; i < count; ++i) to[i * classes + int64_t(id[i])] = one;
    });
  });
  return out;
}

Tensor cumsum(const Tensor& x, int dim) {
  const int at = dim_of("cumsum", x.shape(), dim);
  Tensor out = scanned(x, at, false);
  record("cumsum", out, {x}, [at](const Tensor& grad, Gradients& into) { into.add(0, scanned(grad, at, true)); });
  return out;
}

}  // namespace tessera
