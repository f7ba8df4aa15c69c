#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

struct GroupedOptions {
  bool transpose_b = false;  ///< b is given as (G, N, K)
};

/// Each group of consecutive rows times a matrix of its own:
///
///     out[i] = a[i] b[g]   for rows i in [offsets[g], offsets[g + 1])
///
/// An empty group gives no rows. a (M, K), offsets i64 (G + 1) from 0 to M, b (G, K, N), out (M, N); f32 or f64, a and b
/// alike. K = 0 gives zeros. Gradients: a, and b (an empty group's is zero).
/// The same bits for every thread count: products run on one thread each, on tiles of 256 rows of a group; a gradient of b
/// cuts a long group at rows that depend on the offsets alone and adds the pieces in their order.
/// Memory: out; for the gradient of b at most 64 matrices more.
/// Errors: InvalidArgument for shapes and dtypes, and for offsets that do not start at 0, fall, or end elsewhere than at M;
/// Unsupported for other dtypes.
Tensor grouped_matmul(const Tensor& a, const Tensor& offsets, const Tensor& b, const GroupedOptions& options = {});

/// What its gradient of b is: out[g] = a[rows of g]^T c[rows of g]. a (M, K), c (M, N), out (G, K, N). Not recorded.
Tensor grouped_outer(const Tensor& a, const Tensor& offsets, const Tensor& c);

}  // namespace tessera
