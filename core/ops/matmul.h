#pragma once

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/tensor.h"

namespace tessera {

struct MatmulOptions {
  bool transpose_a = false;  ///< a is given as (K, M)
  bool transpose_b = false;  ///< b is given as (N, K)
  Tensor bias{};             ///< (N), added to each row; undefined: none
  Activation activation = Activation::none;
};

/// activation(op(a) op(b) + bias): a (M, K), b (K, N), out (M, N); f32 (oneDNN; our own kernel for the smallest) or f64 (our
/// own kernel), bf16 and f16 as storage (computed in f32, rounded once after the activation; the bias may then be f32); all
/// of one dtype. Bias and activation (relu, elu, tanh or sigmoid, as in unary.h) are applied while a tile is in the cache.
/// K = 0 gives zeros (then bias and activation); the output is never read. Gradients to a, b and bias.
/// The same bits for every thread count: products run single-threaded on tiles of 256 rows, and a long K is cut at points
/// that depend only on the shape, the pieces being added in a fixed tree.
/// Errors: InvalidArgument for shapes or dtypes, naming them; Unsupported for other dtypes.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

struct BatchedOptions {
  bool transpose_a = false;  ///< a is given as (B, K, M)
  bool transpose_b = false;  ///< b is given as (B, N, K)
};

/// One product for each of a batch: a (B, M, K), b (B, K, N), out (B, M, N). The rest as matmul.
Tensor batched_matmul(const Tensor& a, const Tensor& b, BatchedOptions options = {});

}  // namespace tessera
