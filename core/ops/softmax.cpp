#include "tessera/core/ops/softmax.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/softmax_kernels.h"
#include "tessera/core/ops/storage16.h"

namespace tessera {
namespace {

Tensor lines_op(Softmax op, const Tensor& x, const Tensor* grad, const Lines& lines) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  run<SoftmaxKernel>(x.device(), {op, x.dtype() == DType::f64, lines.outer, lines.length, lines.inner, x.raw(),
                                  grad ? grad->raw() : nullptr, out.mutable_raw()});
  return out;
}

Tensor recorded(const char* name, Softmax op, Softmax op_grad, const Tensor& x, int dim) {
  if (is_storage16(x.dtype()))
    return through_f32(x, [&](const Tensor& wide) { return recorded(name, op, op_grad, wide, dim); });
  const Lines lines = lines_of(name, x.shape(), dim);
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64",
                     name, x.dtype());
  Tensor out = lines_op(op, x, nullptr, lines);
  record(name, out, {x}, [y = Saved(out), op_grad, lines](const Tensor& grad, Gradients& into) {
    into.add(0, lines_op(op_grad, y.get(), &grad, lines));
  });
  return out;
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) { return recorded("softmax", Softmax::softmax, Softmax::softmax_grad, x, dim); }

Tensor log_softmax(const Tensor& x, int dim) {
  return recorded("log_softmax", Softmax::log_softmax, Softmax::log_softmax_grad, x, dim);
}

}  // namespace tessera
