#include "tessera/core/ops/unary.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/storage16.h"
#include "tessera/core/ops/unary_kernels.h"

namespace tessera {
namespace {

Tensor apply(Unary op, const Tensor& x, const Tensor* grad, double p, double q) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  run<UnaryKernel>(x.device(),
                   {op, x.dtype() == DType::f64, x.numel(), x.raw(), grad ? grad->raw() : nullptr, out.mutable_raw(), p, q});
  return out;
}

enum class Keeps { input, output };

Tensor recorded(const char* name, Unary op, Keeps keeps, const Tensor& x, double p = 0, double q = 0) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) { return recorded(name, op, keeps, wide, p, q); });
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64",
                     name, x.dtype());
  Tensor out = apply(op, x, nullptr, p, q);
  record(name, out, {x}, [saved = Saved(keeps == Keeps::output ? out : x), op, p, q](const Tensor& grad, Gradients& into) {
    into.add(0, apply(op, saved.get(), &grad, p, q));
  });
  return out;
}

/// Functions whose gradient needs nothing kept.
template <class F>
Tensor linear(const char* name, Unary op, const Tensor& x, double p, F gradient) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) { return linear(name, op, wide, p, gradient); });
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64",
                     name, x.dtype());
  Tensor out = apply(op, x, nullptr, p, 0);
  record(name, out, {x}, [gradient](const Tensor& grad, Gradients& into) { into.add(0, gradient(grad)); });
  return out;
}

}  // namespace

Tensor exp(const Tensor& x) { return recorded("exp", Unary::exp, Keeps::output, x); }
Tensor log(const Tensor& x) { return recorded("log", Unary::log, Keeps::input, x); }
Tensor sqrt(const Tensor& x) { return recorded("sqrt", Unary::sqrt, Keeps::output, x); }
Tensor tanh(const Tensor& x) { return recorded("tanh", Unary::tanh, Keeps::output, x); }
Tensor sigmoid(const Tensor& x) { return recorded("sigmoid", Unary::sigmoid, Keeps::output, x); }
Tensor relu(const Tensor& x) { return recorded("relu", Unary::relu, Keeps::output, x); }

Tensor leaky_relu(const Tensor& x, double slope) {
  return recorded("leaky_relu", Unary::leaky_relu, Keeps::input, x, slope);
}

Tensor elu(const Tensor& x, double alpha) {
  check(alpha >= 0, "elu: alpha is {} but needs to be 0 or more", alpha);
  return recorded("elu", Unary::elu, Keeps::output, x, alpha);
}

Tensor gelu(const Tensor& x) { return recorded("gelu", Unary::gelu, Keeps::input, x); }
Tensor gelu_tanh(const Tensor& x) { return recorded("gelu_tanh", Unary::gelu_tanh, Keeps::input, x); }
Tensor softplus(const Tensor& x) { return recorded("softplus", Unary::softplus, Keeps::input, x); }
Tensor abs(const Tensor& x) { return recorded("abs", Unary::abs, Keeps::input, x); }
Tensor square(const Tensor& x) { return recorded("square", Unary::square, Keeps::input, x); }

Tensor sign(const Tensor& x) {
  return linear("sign", Unary::sign, x, 0,
                [](const Tensor& grad) { return zeros(grad.shape(), grad.dtype(), grad.device()); });
}

Tensor clamp(const Tensor& x, double low, double high) {
  check(low <= high, "clamp: low is {} and high {} but low needs to be at most high", low, high);
  return recorded("clamp", Unary::clamp, Keeps::input, x, low, high);
}

Tensor pow(const Tensor& x, double p) {
  if (p == 1) return scale(x, 1);
  if (p == 2) return recorded("pow", Unary::square, Keeps::input, x);
  if (p == 0.5) return recorded("pow", Unary::sqrt, Keeps::output, x);
  return recorded("pow", Unary::pow, Keeps::input, x, p);
}

Tensor scale(const Tensor& x, double factor) {
  return linear("scale", Unary::scale, x, factor, [factor](const Tensor& grad) { return scale(grad, factor); });
}

Tensor neg(const Tensor& x) {
  return linear("neg", Unary::scale, x, -1, [](const Tensor& grad) { return neg(grad); });
}

Tensor shift(const Tensor& x, double value) {
  return linear("shift", Unary::shift, x, value, [](const Tensor& grad) { return grad; });
}

}  // namespace tessera
