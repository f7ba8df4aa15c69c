#pragma once

#include "tessera/core/tensor.h"

/// Functions of one tensor, element by element; f32 or f64, bf16 and f16 as storage (computed in f32, rounded once; so are
/// their gradients); any shape; nothing gives nothing. In f32 they are vectorised,
/// within 4 ulp (core/simd.h says which polynomial and how exact; results below 2^-126 may come out as 0). NaN gives NaN.
/// Errors: Unsupported for other dtypes.
namespace tessera {

/// e^x. Gradient: grad y.
Tensor exp(const Tensor& x);
/// ln x; -inf at 0, NaN below. Gradient: grad / x.
Tensor log(const Tensor& x);
/// NaN below 0. Gradient: grad / (2 y), infinite at 0.
Tensor sqrt(const Tensor& x);
/// Gradient: grad (1 - y^2).
Tensor tanh(const Tensor& x);
/// 1 / (1 + e^-x). Gradient: grad y (1 - y).
Tensor sigmoid(const Tensor& x);
/// max(x, 0). Gradient: grad where x > 0, else 0 (as PyTorch, 0 at x = 0).
Tensor relu(const Tensor& x);
/// x where x > 0, else slope x. Gradient: grad or slope grad; the slope's at 0.
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
/// x where x > 0, else alpha (e^x - 1). Gradient: grad, or grad alpha e^x. Errors: InvalidArgument for alpha < 0.
Tensor elu(const Tensor& x, double alpha = 1);
/// x Phi(x), Phi the normal distribution function; in f32 within 3e-7 |x|. Gradient: grad (Phi(x) + x phi(x)).
Tensor gelu(const Tensor& x);
/// Its approximation x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), and the gradient of that.
Tensor gelu_tanh(const Tensor& x);
/// ln(1 + e^x), without overflow. Gradient: grad sigmoid(x).
Tensor softplus(const Tensor& x);
/// |x|. Gradient: grad sign(x), 0 at 0.
Tensor abs(const Tensor& x);
/// 1, 0 or -1. The gradient is zero.
Tensor sign(const Tensor& x);
Tensor neg(const Tensor& x);
/// Gradient: 2 grad x.
Tensor square(const Tensor& x);
/// Into [low, high]. Gradient: grad where low <= x <= high, else 0. Errors: InvalidArgument unless low <= high.
Tensor clamp(const Tensor& x, double low, double high);
/// x^p, p a number. Gradient: grad p x^(p - 1), 0 everywhere for p = 0.
Tensor pow(const Tensor& x, double p);
/// x * factor. Gradient: grad * factor.
Tensor scale(const Tensor& x, double factor);
/// x + value. Gradient: grad.
Tensor shift(const Tensor& x, double value);

}  // namespace tessera
