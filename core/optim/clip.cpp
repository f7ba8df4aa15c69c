#include "tessera/core/optim/clip.h"

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/unary_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

void in_place(Unary op, Tensor grad, double p, double q) {
  void* data = grad.mutable_raw();
  run<UnaryKernel>(grad.device(), {op, grad.dtype() == DType::f64, grad.numel(), data, nullptr, data, p, q});
}

double sum_of_squares(const Tensor& grad) {
  return with_float(grad.dtype(), "clip_grad_norm", [&]<class T>() {
    const T* g = grad.data<T>();
    return parallel_sum(grad.numel(), 1 << 14, [=](int64_t begin, int64_t end) {
      double lane[8] = {};
      int64_t i = begin;
      for (; i + 8 <= end; i += 8)
        for (int l = 0; l < 8; ++l) lane[l] += double(g[i + l]) * double(g[i + l]);
      for (; i < end; ++i) lane[0] += double(g[i]) * double(g[i]);
      return tree_sum(lane, 8);
    });
  });
}

}  // namespace

double clip_grad_norm(std::span<const Tensor> parameters, double max_norm) {
  check(max_norm >= 0, "clip_grad_norm: max_norm is {} but needs to be 0 or more", max_norm);
  double sum = 0;
  for (const Tensor& parameter : parameters) {
    const Tensor grad = parameter.grad();
    if (grad.defined()) sum += sum_of_squares(grad);
  }
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm) || norm <= max_norm) return norm;
  for (const Tensor& parameter : parameters) {
    const Tensor grad = parameter.grad();
    if (grad.defined()) in_place(Unary::scale, grad, max_norm / norm, 0);
  }
  return norm;
}

void clip_grad_value(std::span<const Tensor> parameters, double limit) {
  check(limit >= 0, "clip_grad_value: limit is {} but needs to be 0 or more", limit);
  for (const Tensor& parameter : parameters) {
    const Tensor grad = parameter.grad();
    if (grad.defined()) in_place(Unary::clamp, grad, -limit, limit);
  }
}

}  // namespace tessera
