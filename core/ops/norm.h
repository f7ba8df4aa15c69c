#pragma once

#include "tessera/core/tensor.h"

/// Normalisation as PyTorch has it; f32 or f64, moments in double and in two passes, sums over rows in fixed blocks. x in
/// bf16 or f16 is storage: computed in f32, rounded once; weight and bias may then be of that dtype or f32, running moments
/// are f32.
namespace tessera {

/// (x - mean) / sqrt(var + eps) * weight + bias, mean and (biased) var over the last dimension of x (.., F). weight and
/// bias (F) of x's dtype, or undefined for 1 and 0. Nothing gives nothing. Gradients to all three.
/// Errors: InvalidArgument for shapes or dtypes; Unsupported for other dtypes.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

struct BatchNormOptions {
  bool training = true;   ///< use the batch's moments, and move the running ones; else use the running ones
  double momentum = 0.1;  ///< weight of the batch in the running moments
  double eps = 1e-5;
};

/// (x - mean) / sqrt(var + eps) * weight + bias for each channel: x (N, C) or (N, C, ..), moments over all but dimension 1.
/// weight, bias (C) of x's dtype, or undefined for 1 and 0. The running moments (C) are changed in place in training,
/// running_var by the unbiased estimate; undefined: not kept, and the batch's moments always serve.
/// Gradients to x, weight and bias; through the moments where they are the batch's.
/// Errors: InvalidArgument for shapes or dtypes, for one value a channel in training (it has no variance), for evaluation
/// of no running moments; Unsupported for other dtypes.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& running_mean, Tensor& running_var,
                  BatchNormOptions options = {});

}  // namespace tessera
