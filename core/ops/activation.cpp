#include "tessera/core/ops/activation.h"

#include "tessera/core/kernel.h"
#include "tessera/core/ops/unary.h"
#include "tessera/core/ops/unary_kernels.h"

namespace tessera {

Tensor activate(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none: break;
    case Activation::relu: return relu(x);
    case Activation::elu: return elu(x);
    case Activation::tanh: return tanh(x);
    case Activation::sigmoid: return sigmoid(x);
  }
  return x;
}

Tensor activation_gradient(Activation activation, const Tensor& y, const Tensor& grad) {
  Unary op = Unary::relu;
  switch (activation) {
    case Activation::none: return grad;
    case Activation::relu: break;
    case Activation::elu: op = Unary::elu; break;
    case Activation::tanh: op = Unary::tanh; break;
    case Activation::sigmoid: op = Unary::sigmoid; break;
  }
  Tensor out = Tensor::empty(y.shape(), y.dtype(), y.device());
  run<UnaryKernel>(y.device(), {op, y.dtype() == DType::f64, y.numel(), y.raw(), grad.raw(), out.mutable_raw(), 1, 0});
  return out;
}

}  // namespace tessera
