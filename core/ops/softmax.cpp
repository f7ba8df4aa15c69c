#include "tessera/core/ops/softmax.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/softmax_kernels.h"

namespace tessera {
namespace {

Tensor rows_op(Softmax op, const Tensor& x, const Tensor* grad) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  run<SoftmaxKernel>(x.device(), {op, x.dtype() == DType::f64, x.dim(0), x.dim(1), x.raw(), grad ? grad->raw() : nullptr,
                                  out.mutable_raw()});
  return out;
}

Tensor recorded(const char* name, Softmax op, Softmax op_grad, const Tensor& x) {
  check(x.ndim() == 2, "{}: x has shape {} but needs two dimensions", name, x.shape());
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64",
                     name, x.dtype());
  Tensor out = rows_op(op, x, nullptr);
  record(name, out, {x}, [y = Saved(out), op_grad](const Tensor& grad, Gradients& into) {
    into.add(0, rows_op(op_grad, y.get(), &grad));
  });
  return out;
}

}  // namespace

Tensor softmax(const Tensor& x) { return recorded("softmax", Softmax::softmax, Softmax::softmax_grad, x); }
Tensor log_softmax(const Tensor& x) { return recorded("log_softmax", Softmax::log_softmax, Softmax::log_softmax_grad, x); }

}  // namespace tessera
