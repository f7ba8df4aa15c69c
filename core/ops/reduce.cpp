#include "tessera/core/ops/reduce.h"

#include <climits>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce_kernels.h"
#include "tessera/core/ops/storage16.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

bool checked_double(const char* op, const Tensor& x) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
  return x.dtype() == DType::f64;
}

/// `shape` without dimension `dim`, or with size 1 there.
Shape reduced(const Shape& shape, int dim, bool keepdim) {
  if (keepdim) return shape.with(dim, 1);
  int64_t sizes[Shape::kMaxDims];
  int n = 0;
  for (int i = 0; i < shape.ndim(); ++i)
    if (i != dim) sizes[n++] = shape[i];
  return Shape(sizes, n);
}

struct Sum {
  ReduceOp op = ReduceOp::sum;
  double factor = 1;
  bool root = false;
  const Tensor* centre = nullptr;
};

Tensor summed(const char* op, const Tensor& x, const Lines& lines, const Shape& shape, Sum how) {
  Tensor out = Tensor::empty(shape, x.dtype(), x.device());
  Scratch<double> partials(ReduceKernel::partials_of(lines.outer, lines.length, lines.inner));
  run<ReduceKernel>(x.device(), {how.op, checked_double(op, x), how.root, lines.outer, lines.length, lines.inner, x.raw(),
                                 how.centre ? how.centre->raw() : nullptr, out.mutable_raw(), how.factor, partials.data()});
  return out;
}

/// All elements as one line.
Lines all_of(const Tensor& x) { return {1, x.numel(), 1}; }

Extreme extreme(const char* op, ExtremeOp kind, const Tensor& x, const Lines& lines, const Shape& shape,
                bool values = true) {
  check(lines.length > 0 || shape.numel() == 0, "{}: x has shape {}, the extreme of no elements is undefined", op,
        x.shape());
  check(lines.length <= INT32_MAX, "{}: x has shape {}, but lines of more than 2^31 - 1 elements are not supported", op,
        x.shape());
  Extreme out;
  if (values) out.values = Tensor::empty(shape, x.dtype(), x.device());
  out.indices = Tensor::empty(shape, DType::i32, x.device());
  const bool is_double = checked_double(op, x);
  if (shape.numel() == 0) return out;
  const int64_t partials = ReduceKernel::partials_of(lines.outer, lines.length, lines.inner);
  Scratch<double> partial_values(partials);
  Scratch<int32_t> partial_places(partials);
  run<ExtremeKernel>(x.device(), {kind, is_double, lines.outer, lines.length, lines.inner, x.raw(),
                                  values ? out.values.mutable_raw() : nullptr, out.indices.mutable_data<int32_t>(),
                                  partial_values.data(), partial_places.data()});
  return out;
}

/// Zeros of `shape`, but value (times the sign of x there, when x is given) at each line's index.
Tensor spread_to(const Tensor& value, const Tensor& indices, const Shape& shape, const Lines& lines,
                 const Tensor* x = nullptr) {
  Tensor out = zeros(shape, value.dtype(), value.device());
  with_float(value.dtype(), "max", [&]<class T>() {
    const T* from = value.data<T>();
    const T* at = x ? x->data<T>() : nullptr;
    const int32_t* index = indices.data<int32_t>();
    T* to = out.mutable_data<T>();
    parallel_for(lines.outer * lines.inner, 1 << 13, [=](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t place = (line / lines.inner * lines.length + index[line]) * lines.inner + line % lines.inner;
        to[place] = at == nullptr || at[place] > T(0) ? from[line] : at[place] < T(0) ? -from[line] : T(0);
      }
    });
  });
  return out;
}

Extreme recorded_extreme(const char* op, ExtremeOp kind, const Tensor& x, const Lines& lines, const Shape& shape) {
  if (is_storage16(x.dtype())) {
    Extreme out = recorded_extreme(op, kind, cast(x, DType::f32), lines, shape);
    out.values = cast(out.values, x.dtype());
    return out;
  }
  checked_double(op, x);
  Extreme out = extreme(op, kind, x, lines, shape);
  record(op, out.values, {x}, [indices = Saved(out.indices), of_x = x.shape(), lines](const Tensor& grad, Gradients& into) {
    into.add(0, spread_to(grad, indices.get(), of_x, lines));
  });
  return out;
}

/// A gradient of the lines' results, again with dimension `dim` of size 1.
Tensor kept(const Tensor& grad, const Shape& of_x, int dim) { return grad.view_as(of_x.with(dim, 1)); }

Tensor scaled_sum(const char* op, const Tensor& x, double factor) {
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return scaled_sum(op, wide, factor); });
  Tensor out = summed(op, x, all_of(x), Shape{}, {.factor = factor});
  record(op, out, {x}, [shape = x.shape(), dtype = x.dtype(), factor](const Tensor& grad, Gradients& into) {
    into.add(0, full(shape, grad.item() * factor, dtype));
  });
  return out;
}

Tensor scaled_sum(const char* op, const Tensor& x, int dim, bool keepdim, double factor) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) { return scaled_sum(op, wide, dim, keepdim, factor); });
  Tensor out = summed(op, x, lines_of(op, x.shape(), dim), reduced(x.shape(), dim, keepdim), {.factor = factor});
  record(op, out, {x}, [of_x = x.shape(), dim, factor](const Tensor& grad, Gradients& into) {
    const Tensor line = kept(grad, of_x, dim);
    into.add(0, expand(factor == 1 ? line : scale(line, factor), of_x));
  });
  return out;
}

/// `dim` < 0: over all elements.
Tensor norm_over(const Tensor& x, Norm kind, const Lines& lines, const Shape& shape, const Shape& kept_shape) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) { return norm_over(wide, kind, lines, shape, kept_shape); });
  checked_double("norm", x);
  if (kind == Norm::inf) {
    if (lines.length == 0) return zeros(shape, x.dtype(), x.device());
    Extreme largest = extreme("norm", ExtremeOp::max_abs, x, lines, shape);
    Tensor out = abs(largest.values);
    record("norm", out, {x}, [x = Saved(x), indices = Saved(largest.indices), lines](const Tensor& grad, Gradients& into) {
      into.add(0, spread_to(grad, indices.get(), x.get().shape(), lines, &x.get()));
    });
    return out;
  }
  if (kind == Norm::l1) {
    Tensor out = summed("norm", x, lines, shape, {.op = ReduceOp::sum_abs});
    record("norm", out, {x}, [x = Saved(x), kept_shape](const Tensor& grad, Gradients& into) {
      into.add(0, mul(sign(x.get()), grad.view_as(kept_shape)));
    });
    return out;
  }
  Tensor out = summed("norm", x, lines, shape, {.op = ReduceOp::sum_square, .root = true});
  record("norm", out, {x}, [x = Saved(x), y = Saved(out), kept_shape](const Tensor& grad, Gradients& into) {
    const Tensor zero = zeros(Shape{}, grad.dtype());
    const Tensor factor = where(equal(y.get(), zero), zero, div(grad, y.get()));
    into.add(0, mul(x.get(), factor.view_as(kept_shape)));
  });
  return out;
}

}  // namespace

Tensor sum(const Tensor& x) { return scaled_sum("sum", x, 1); }

Tensor mean(const Tensor& x) {
  check(x.numel() > 0, "mean: x has shape {}, the mean of no elements is undefined", x.shape());
  return scaled_sum("mean", x, 1 / double(x.numel()));
}

Tensor max(const Tensor& x) { return recorded_extreme("max", ExtremeOp::max, x, all_of(x), Shape{}).values; }
Tensor min(const Tensor& x) { return recorded_extreme("min", ExtremeOp::min, x, all_of(x), Shape{}).values; }

Tensor sum(const Tensor& x, int dim, bool keepdim) {
  return scaled_sum("sum", x, dim_of("sum", x.shape(), dim), keepdim, 1);
}

Tensor mean(const Tensor& x, int dim, bool keepdim) {
  const int at = dim_of("mean", x.shape(), dim);
  check(x.dim(at) > 0, "mean: x has shape {}, the mean of no elements is undefined", x.shape());
  return scaled_sum("mean", x, at, keepdim, 1 / double(x.dim(at)));
}

Tensor var(const Tensor& x, int dim, bool unbiased, bool keepdim) {
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return var(wide, dim, unbiased, keepdim); });
  const int at = dim_of("var", x.shape(), dim);
  const Lines lines = lines_of("var", x.shape(), at);
  check(lines.length >= (unbiased ? 2 : 1), "var: x has shape {} but needs {} or more elements along dimension {}",
        x.shape(), unbiased ? 2 : 1, at);
  const double factor = 1 / double(lines.length - (unbiased ? 1 : 0));
  const Shape line = x.shape().with(at, 1);
  const Tensor centre = summed("var", x, lines, line, {.factor = 1 / double(lines.length)});
  Tensor out = summed("var", x, lines, reduced(x.shape(), at, keepdim),
                      {.op = ReduceOp::sum_square_from, .factor = factor, .centre = &centre});
  record("var", out, {x}, [x = Saved(x), centre = Saved(centre), line, factor](const Tensor& grad, Gradients& into) {
    into.add(0, mul(sub(x.get(), centre.get()), scale(grad.view_as(line), 2 * factor)));
  });
  return out;
}

Tensor norm(const Tensor& x, Norm kind, int dim, bool keepdim) {
  const int at = dim_of("norm", x.shape(), dim);
  return norm_over(x, kind, lines_of("norm", x.shape(), at), reduced(x.shape(), at, keepdim), x.shape().with(at, 1));
}

Tensor norm(const Tensor& x, Norm kind) { return norm_over(x, kind, all_of(x), Shape{}, Shape{}); }

Extreme max(const Tensor& x, int dim, bool keepdim) {
  const int at = dim_of("max", x.shape(), dim);
  return recorded_extreme("max", ExtremeOp::max, x, lines_of("max", x.shape(), at), reduced(x.shape(), at, keepdim));
}

Extreme min(const Tensor& x, int dim, bool keepdim) {
  const int at = dim_of("min", x.shape(), dim);
  return recorded_extreme("min", ExtremeOp::min, x, lines_of("min", x.shape(), at), reduced(x.shape(), at, keepdim));
}

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  const int at = dim_of("argmax", x.shape(), dim);
  return extreme("argmax", ExtremeOp::max, widened(x.detach()), lines_of("argmax", x.shape(), at),
                 reduced(x.shape(), at, keepdim), false)
      .indices;
}

Tensor argmin(const Tensor& x, int dim, bool keepdim) {
  const int at = dim_of("argmin", x.shape(), dim);
  return extreme("argmin", ExtremeOp::min, widened(x.detach()), lines_of("argmin", x.shape(), at),
                 reduced(x.shape(), at, keepdim), false)
      .indices;
}

Tensor sum_rows(const Tensor& x) {
  if (!is_storage16(x.dtype())) checked_double("sum_rows", x);
  check(x.ndim() == 2, "sum_rows: x has shape {} but needs two dimensions", x.shape());
  return scaled_sum("sum_rows", x, 0, false, 1);
}

Tensor argmax_rows(const Tensor& x) {
  if (!is_storage16(x.dtype())) checked_double("argmax_rows", x);
  check(x.ndim() == 2, "argmax_rows: x has shape {} but needs two dimensions", x.shape());
  check(x.dim(1) > 0 || x.dim(0) == 0, "argmax_rows: x has shape {}, the largest of no elements is undefined", x.shape());
  return argmax(x, 1);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return sum_to(wide, shape); });
  Shape joined;
  check(broadcasts(x.shape(), shape, joined) && joined == x.shape(), "sum_to: shape {} does not broadcast to {}", shape,
        x.shape());
  // Neighbouring dimensions that were both repeated, or both not, are summed as one.
  Tensor out = x.detach();
  int64_t inner = 1;
  for (int i = 1; i <= x.ndim();) {
    const auto repeated = [&](int d) { return x.dim(-d) != 1 && (d > shape.ndim() || shape[-d] == 1); };
    const bool summing = repeated(i);
    int64_t length = 1;
    for (; i <= x.ndim() && (x.dim(-i) == 1 || repeated(i) == summing); ++i) length *= x.dim(-i);
    if (summing) {
      const int64_t outer = length * inner == 0 ? 0 : out.numel() / (length * inner);
      out = summed("sum_to", out, {outer, length, inner}, Shape{outer, inner}, {});
    } else {
      inner *= length;
    }
  }
  if (out.numel() != shape.numel()) out = zeros(shape, x.dtype(), x.device());
  out = out.view_as(shape);
  record("sum_to", out, {x}, [of_x = x.shape()](const Tensor& grad, Gradients& into) { into.add(0, expand(grad, of_x)); });
  return out;
}

}  // namespace tessera
