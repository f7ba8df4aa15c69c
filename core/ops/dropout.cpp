#include "tessera/core/ops/dropout.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/dropout_kernels.h"

namespace tessera {
namespace {

Tensor masked(const Tensor& x, double p, const Philox& random) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  run<DropoutKernel>(x.device(), {x.dtype() == DType::f64, x.numel(), x.raw(), out.mutable_raw(), 1 / (1 - p),
                                  uint32_t(p * 0x1p32), random});
  return out;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, Generator& generator) {
  check(p >= 0 && p <= 1, "dropout: p is {} but needs to be in [0, 1]", p);
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "dropout: dtype {} is not supported, use f32 or f64",
                     x.dtype());
  const Philox random = generator.next();
  if (p == 0) return x;
  Tensor out = p == 1 ? zeros(x.shape(), x.dtype(), x.device()) : masked(x, p, random);
  record("dropout", out, {x}, [p, random](const Tensor& grad, Gradients& into) {
    into.add(0, p == 1 ? zeros(grad.shape(), grad.dtype(), grad.device()) : masked(grad, p, random));
  });
  return out;
}

}  // namespace tessera
