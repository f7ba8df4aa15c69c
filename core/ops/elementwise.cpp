#include "tessera/core/ops/elementwise.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/elementwise_kernels.h"
#include "tessera/core/ops/reduce.h"

namespace tessera {
namespace {

void check_float(const char* op, const Tensor& x) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
}

void check_same(const char* op, const Tensor& a, const Tensor& b) {
  check_float(op, a);
  check(a.dtype() == b.dtype(), "{}: a is {} but b is {}", op, a.dtype(), b.dtype());
  check(a.shape() == b.shape(), "{}: a has shape {} but b has shape {}", op, a.shape(), b.shape());
}

void apply(Elementwise op, const Tensor& a, const Tensor* b, Tensor& out, double factor = 0, int64_t width = 0) {
  run<ElementwiseKernel>(a.device(), {op, a.dtype() == DType::f64, a.numel(), width, a.raw(), b ? b->raw() : nullptr,
                                      out.mutable_raw(), factor});
}

Tensor made(Elementwise op, const Tensor& a, const Tensor* b, double factor = 0, int64_t width = 0) {
  Tensor out = Tensor::empty(a.shape(), a.dtype(), a.device());
  apply(op, a, b, out, factor, width);
  return out;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  check_same("add", a, b);
  Tensor out = made(Elementwise::add, a, &b);
  record("add", out, {a, b}, [](const Tensor& grad, Gradients& into) {
    into.add(0, grad);
    into.add(1, grad);
  });
  return out;
}

Tensor sub(const Tensor& a, const Tensor& b) {
  check_same("sub", a, b);
  Tensor out = made(Elementwise::sub, a, &b);
  record("sub", out, {a, b}, [](const Tensor& grad, Gradients& into) {
    into.add(0, grad);
    if (into.wants(1)) into.add(1, scale(grad, -1));
  });
  return out;
}

Tensor mul(const Tensor& a, const Tensor& b) {
  check_same("mul", a, b);
  Tensor out = made(Elementwise::mul, a, &b);
  record("mul", out, {a, b}, [a = Saved(a), b = Saved(b)](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, mul(grad, b.get()));
    if (into.wants(1)) into.add(1, mul(grad, a.get()));
  });
  return out;
}

void add_in_place(Tensor& a, const Tensor& b) {
  check_same("add_in_place", a, b);
  Tensor none = a.detach();
  check(!needs_record("add_in_place", none, {a, b}), "add_in_place: a tensor on the way to a gradient cannot be changed in place");
  apply(Elementwise::add, a, &b, a);
}

Tensor scale(const Tensor& x, double factor) {
  check_float("scale", x);
  Tensor out = made(Elementwise::scale, x, nullptr, factor);
  record("scale", out, {x},
         [factor](const Tensor& grad, Gradients& into) { into.add(0, scale(grad, factor)); });
  return out;
}

Tensor add_bias(const Tensor& x, const Tensor& bias) {
  check_float("add_bias", x);
  check(x.ndim() == 2 && bias.ndim() == 1 && bias.dim(0) == x.dim(1),
        "add_bias: x has shape {} and bias {} but they need to be [N, F] and [F]", x.shape(), bias.shape());
  check(x.dtype() == bias.dtype(), "add_bias: x is {} but bias is {}", x.dtype(), bias.dtype());
  Tensor out = made(Elementwise::add_bias, x, &bias, 0, x.dim(1));
  record("add_bias", out, {x, bias}, [](const Tensor& grad, Gradients& into) {
    into.add(0, grad);
    if (into.wants(1)) into.add(1, sum_rows(grad));
  });
  return out;
}

Tensor relu(const Tensor& x) {
  check_float("relu", x);
  Tensor out = made(Elementwise::relu, x, nullptr);
  record("relu", out, {x}, [out = Saved(out)](const Tensor& grad, Gradients& into) {
    into.add(0, made(Elementwise::relu_grad, out.get(), &grad));
  });
  return out;
}

}  // namespace tessera
