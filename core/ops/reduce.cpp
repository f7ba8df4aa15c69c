#include "tessera/core/ops/reduce.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

bool checked_double(const char* op, const Tensor& x) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
  return x.dtype() == DType::f64;
}

Tensor scaled_sum(const char* op, const Tensor& x, double factor) {
  double total = 0;
  run<SumKernel>(x.device(), {checked_double(op, x), x.raw(), x.numel(), &total});
  Tensor out = full(Shape{}, total * factor, x.dtype());
  record(op, out, {x}, [shape = x.shape(), dtype = x.dtype(), factor](const Tensor& grad, Gradients& into) {
    into.add(0, full(shape, grad.item() * factor, dtype));
  });
  return out;
}

}  // namespace

Tensor sum(const Tensor& x) { return scaled_sum("sum", x, 1); }

Tensor mean(const Tensor& x) {
  check(x.numel() > 0, "mean: x has shape {}, the mean of no elements is undefined", x.shape());
  return scaled_sum("mean", x, 1 / double(x.numel()));
}

Tensor sum_rows(const Tensor& x) {
  const bool is_double = checked_double("sum_rows", x);
  check(x.ndim() == 2, "sum_rows: x has shape {} but needs two dimensions", x.shape());
  const int64_t rows = x.dim(0), width = x.dim(1);
  Tensor out = Tensor::empty(Shape{width}, x.dtype(), x.device());
  const int64_t blocks = (rows + SumRowsKernel::kRowBlock - 1) / SumRowsKernel::kRowBlock;
  Scratch<double> partials(blocks * width);
  run<SumRowsKernel>(x.device(), {is_double, x.raw(), rows, width, out.mutable_raw(), partials.data()});
  record("sum_rows", out, {x}, [rows, width](const Tensor& grad, Gradients& into) {
    Tensor spread = Tensor::empty(Shape{rows, width}, grad.dtype());
    with_float(grad.dtype(), "sum_rows", [&]<class T>() {
      const T* g = grad.data<T>();
      T* y = spread.mutable_data<T>();
      parallel_for(rows, (1 << 15) / (width + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t j = 0; j < width; ++j) y[i * width + j] = g[j];
      });
    });
    into.add(0, spread);
  });
  return out;
}

Tensor argmax_rows(const Tensor& x) {
  checked_double("argmax_rows", x);
  check(x.ndim() == 2, "argmax_rows: x has shape {} but needs two dimensions", x.shape());
  const int64_t rows = x.dim(0), width = x.dim(1);
  check(width > 0 || rows == 0, "argmax_rows: x has shape {}, the largest of no elements is undefined", x.shape());
  Tensor out = Tensor::empty(Shape{rows}, DType::i32);
  with_float(x.dtype(), "argmax_rows", [&]<class T>() {
    const T* values = x.data<T>();
    int32_t* y = out.mutable_data<int32_t>();
    parallel_for(rows, (1 << 14) / (width + 1) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = values + i * width;
        int32_t best = 0;
        for (int32_t j = 1; j < width; ++j)
          if (row[j] > row[best] || (row[j] != row[j] && row[best] == row[best])) best = j;
        y[i] = best;
      }
    });
  });
  return out;
}

}  // namespace tessera
