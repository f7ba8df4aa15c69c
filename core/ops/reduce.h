#pragma once

#include "tessera/core/tensor.h"

/// Reductions of f32 and f64, and of bf16 and f16 as storage (rounded once, at the end), over all elements, or over one
/// dimension, which `keepdim` leaves with size 1; a negative dimension counts from the last. Sums run in double over fixed
/// blocks that are added in a fixed tree: the thread count does not change a bit. Errors: Unsupported for other dtypes;
/// InvalidArgument "<op>: dimension 2 does not exist in shape [4, 3]".
namespace tessera {

/// Over all elements, shape []. The sum of nothing is 0; the others of nothing are an InvalidArgument. Ties of max and min:
/// the first wins and gets the whole gradient. NaN propagates. Gradient otherwise: the scalar's, spread.
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);
Tensor max(const Tensor& x);
Tensor min(const Tensor& x);

/// Over dimension `dim`. The sum of an empty line is 0, its mean an InvalidArgument.
Tensor sum(const Tensor& x, int dim, bool keepdim = false);
Tensor mean(const Tensor& x, int dim, bool keepdim = false);

/// sum (x - mean)^2 / (n - 1), or / n unless `unbiased`; two passes. Gradient: 2 grad (x - mean) / (n - 1).
/// Errors: InvalidArgument for lines of fewer than 2 elements (1 unless `unbiased`).
Tensor var(const Tensor& x, int dim, bool unbiased = true, bool keepdim = false);

enum class Norm : uint8_t { l1, l2, inf };

/// sum |x|, sqrt(sum x^2) or max |x|; 0 of an empty line. Gradient: grad sign(x); grad x / y, 0 where y is 0; grad sign(x)
/// at the first largest.
Tensor norm(const Tensor& x, Norm kind, int dim, bool keepdim = false);
/// Over all elements, shape [].
Tensor norm(const Tensor& x, Norm kind = Norm::l2);

/// A value from each line, and its place in it (i32).
struct Extreme {
  Tensor values, indices;
};

/// Largest or smallest of each line. Ties: the lowest index wins and gets the whole gradient; NaN wins over all.
/// Errors: InvalidArgument for empty lines, or of more than 2^31 - 1 elements.
Extreme max(const Tensor& x, int dim, bool keepdim = false);
Extreme min(const Tensor& x, int dim, bool keepdim = false);
/// Its index alone, i32; no gradient.
Tensor argmax(const Tensor& x, int dim, bool keepdim = false);
Tensor argmin(const Tensor& x, int dim, bool keepdim = false);

/// Column sums: x (N, F) gives (F); zeros without rows. Gradient: grad repeated for each row.
Tensor sum_rows(const Tensor& x);

/// Index of the largest element of each row: x (N, C) gives i32 (N). Ties: the lowest; a NaN counts as largest.
/// No gradient. Errors: InvalidArgument for C = 0 with N > 0.
Tensor argmax_rows(const Tensor& x);

/// The sum over all that broadcasting `shape` to x's shape repeats, of shape `shape`: what the gradient of a broadcast is.
/// The same tensor when it has that shape. Errors: InvalidArgument unless `shape` broadcasts to it.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace tessera
