#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Values in their new order, and where in its line each came from (i32).
struct Sorted {
  Tensor values, indices;
};

/// Each line along `dim` in rising (or falling) order; stable: equal elements keep their order. NaN counts as largest.
/// f32, f64, i32 or i64. Gradient: to where each value came from.
/// Errors: InvalidArgument for lines of more than 2^31 - 1 elements; Unsupported for other dtypes.
Sorted sort(const Tensor& x, int dim = -1, bool descending = false);

/// The k largest (or smallest) of each line along `dim`, best first; of equal ones the lower index comes first. NaN counts
/// as largest. Dtypes and gradient as `sort`. Errors: also InvalidArgument unless 0 <= k <= size.
Sorted topk(const Tensor& x, int64_t k, int dim = -1, bool largest = true);

}  // namespace tessera
