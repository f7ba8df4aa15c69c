#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

struct MatmulOptions {
  bool transpose_a = false;  ///< a is given as (K, M)
  bool transpose_b = false;  ///< b is given as (N, K)
};

/// op(a) op(b): a (M, K), b (K, N), out (M, N); f32 (oneDNN) or f64 (our own kernel), both of one dtype.
/// K = 0 gives zeros; the output is never read. Gradients to both.
/// The same bits for every thread count: oneDNN runs single-threaded on tiles of 256 rows, and a long K is cut at points
/// that depend only on the shape, the pieces being added in a fixed tree.
/// Errors: InvalidArgument for shapes or dtypes, naming them; Unsupported for other dtypes.
Tensor matmul(const Tensor& a, const Tensor& b, MatmulOptions options = {});

}  // namespace tessera
