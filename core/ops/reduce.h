#pragma once

#include "tessera/core/tensor.h"

/// Reductions; f32 and f64. Sums run over fixed blocks that are added in a fixed tree, in double per block for f32:
/// the thread count does not change a bit.
namespace tessera {

/// Sum or mean of all elements, shape []. Sum of nothing is 0; mean of nothing is an InvalidArgument.
/// Gradient: the scalar's, spread.
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

/// Column sums: x (N, F) gives (F); zeros without rows. Gradient: grad repeated for each row.
Tensor sum_rows(const Tensor& x);

/// Index of the largest element of each row: x (N, C) gives i32 (N). Ties: the lowest; a NaN counts as largest.
/// No gradient. Errors: InvalidArgument for C = 0 with N > 0.
Tensor argmax_rows(const Tensor& x);

}  // namespace tessera
