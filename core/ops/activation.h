#pragma once

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/tensor.h"

namespace tessera {

/// relu, elu (alpha 1), tanh or sigmoid of x as in unary.h; x itself for none. For layers that take one as an option.
Tensor activate(const Tensor& x, Activation activation);

/// The gradient before an activation, for ops that apply one to their result: `grad` times the slope that the output `y`
/// gives; `grad` itself for none, when y may be undefined. Recorded by nobody.
Tensor activation_gradient(Activation activation, const Tensor& y, const Tensor& grad);

}  // namespace tessera
