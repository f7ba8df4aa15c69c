#pragma once

#include "tessera/core/tensor.h"

/// Element by element; f32 and f64 unless said otherwise. Two tensors must have equal shapes and dtypes
/// (InvalidArgument naming both otherwise).
namespace tessera {

/// a + b, a - b, a * b. Gradients to both.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);

/// a += b without recording. Errors: InvalidArgument when `a` was computed with a gradient to follow.
void add_in_place(Tensor& a, const Tensor& b);

/// x * factor. Gradient: grad * factor.
Tensor scale(const Tensor& x, double factor);

/// x[i, j] + bias[j]; x (N, F), bias (F). Gradients: grad, and its sum over rows in a fixed tree.
Tensor add_bias(const Tensor& x, const Tensor& bias);

/// max(x, 0); NaN stays NaN. Gradient: grad where x > 0, else 0 (as PyTorch, 0 at x = 0).
Tensor relu(const Tensor& x);

}  // namespace tessera
