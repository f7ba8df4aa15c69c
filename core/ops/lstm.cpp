// Everything that does not wait for the last state is one matrix product for all steps: the inputs' share of the gates, and
// in the backward pass the gradients of inputs and weights. A step is one product with W_hh and one pass over its gates.
// Inside, time comes first, so that a step is a contiguous block.

#include "tessera/core/ops/lstm.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/lstm_kernels.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"

namespace tessera {
namespace {

struct Sizes {
  int64_t rows, steps, in, hidden;
};

Sizes checked(const Tensor& x, const LstmWeights& w) {
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "lstm: dtype {} is not supported, use f32 or f64",
                     x.dtype());
  check(x.ndim() == 3, "lstm: x has shape {} but needs to be [N, T, F]", x.shape());
  check(w.weight_hh.ndim() == 2 && w.weight_hh.dim(0) == 4 * w.weight_hh.dim(1) && w.weight_hh.dtype() == x.dtype(),
        "lstm: weight_hh is {} {} but needs to be {} [4 H, H]", w.weight_hh.dtype(), w.weight_hh.shape(), x.dtype());
  const int64_t hidden = w.weight_hh.dim(1);
  check(w.weight_ih.shape() == Shape{4 * hidden, x.dim(2)} && w.weight_ih.dtype() == x.dtype(),
        "lstm: weight_ih is {} {} but needs to be {} [{}, {}]", w.weight_ih.dtype(), w.weight_ih.shape(), x.dtype(), 4 * hidden,
        x.dim(2));
  for (const Tensor* bias : {&w.bias_ih, &w.bias_hh})
    check(!bias->defined() || (bias->shape() == Shape{4 * hidden} && bias->dtype() == x.dtype()),
          "lstm: a bias is {} {} but needs to be {} [{}]", bias->defined() ? bias->dtype() : x.dtype(),
          bias->defined() ? bias->shape() : Shape{}, x.dtype(), 4 * hidden);
  return {x.dim(0), x.dim(1), x.dim(2), hidden};
}

/// Step `t` of a (steps, rows, width) array.
Tensor step_of(const Tensor& all, int64_t t) { return all.view_rows(t, t + 1).view_as(Shape{all.dim(1), all.dim(2)}); }

const void* raw_step(const Tensor& all, int64_t t) { return all.view_rows(t, t + 1).raw(); }

struct State {
  Tensor gates, c, h;  // (steps, rows, 4 hidden), (steps, rows, hidden) twice
};

State run_forward(const Tensor& x_by_step, const LstmWeights& w, const Sizes& s, bool reverse) {
  Tensor bias;
  if (w.bias_ih.defined() && w.bias_hh.defined())
    bias = add(w.bias_ih.detach(), w.bias_hh.detach());
  else if (w.bias_ih.defined() || w.bias_hh.defined())
    bias = (w.bias_ih.defined() ? w.bias_ih : w.bias_hh).detach();
  const DType dtype = x_by_step.dtype();
  State state{matmul(x_by_step.view_as(Shape{s.steps * s.rows, s.in}), w.weight_ih.detach(),
                     {.transpose_b = true, .bias = bias})
                  .view_as(Shape{s.steps, s.rows, 4 * s.hidden}),
              Tensor::empty(Shape{s.steps, s.rows, s.hidden}, dtype), Tensor::empty(Shape{s.steps, s.rows, s.hidden}, dtype)};
  const Tensor weight_hh = w.weight_hh.detach();
  for (int64_t n = 0; n < s.steps; ++n) {
    const int64_t t = reverse ? s.steps - 1 - n : n, before = reverse ? t + 1 : t - 1;
    const Tensor recurrent =
        n == 0 ? Tensor() : matmul(step_of(state.h, before), weight_hh, {.transpose_b = true});
    Tensor gates = step_of(state.gates, t), c = step_of(state.c, t), h = step_of(state.h, t);
    run<LstmStepKernel>(x_by_step.device(), {dtype == DType::f64, s.rows, s.hidden, gates.mutable_raw(),
                                             n == 0 ? nullptr : recurrent.raw(), n == 0 ? nullptr : raw_step(state.c, before),
                                             c.mutable_raw(), h.mutable_raw(), nullptr, nullptr, false, nullptr});
  }
  return state;
}

/// Gradient of every step's gates before activation, (steps, rows, 4 hidden).
Tensor run_backward(const State& state, const Tensor& weight_hh, const Tensor& grad_by_step, const Sizes& s, bool reverse) {
  Tensor grad_gates = Tensor::empty(state.gates.shape(), state.gates.dtype()),
         grad_c = Tensor::empty(Shape{s.rows, s.hidden}, state.gates.dtype());
  Tensor from_next;
  for (int64_t n = s.steps; n-- > 0;) {
    const int64_t t = reverse ? s.steps - 1 - n : n, before = reverse ? t + 1 : t - 1;
    Tensor out = step_of(grad_gates, t), gates = step_of(state.gates, t), c = step_of(state.c, t);
    run<LstmStepKernel>(out.device(), {out.dtype() == DType::f64, s.rows, s.hidden, const_cast<void*>(gates.raw()),
                                       from_next.defined() ? from_next.raw() : nullptr,
                                       n == 0 ? nullptr : raw_step(state.c, before), const_cast<void*>(c.raw()), nullptr,
                                       raw_step(grad_by_step, t), grad_c.mutable_raw(), n == s.steps - 1, out.mutable_raw()});
    if (n > 0) from_next = matmul(out, weight_hh);
  }
  return grad_gates;
}

}  // namespace

Tensor lstm(const Tensor& x, const LstmWeights& w, bool reverse) {
  const Sizes s = checked(x, w);
  const Tensor x_by_step = transpose(x.detach(), 0, 1);
  const State state = run_forward(x_by_step, w, s, reverse);
  Tensor out = transpose(state.h, 0, 1);
  record("lstm", out, {x, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh},
         [x_by_step, weight_ih = Saved(w.weight_ih), weight_hh = Saved(w.weight_hh), state, s, reverse](const Tensor& grad,
                                                                                                     Gradients& into) {
           const Tensor by_step = run_backward(state, weight_hh.get(), transpose(grad, 0, 1), s, reverse);
           const int64_t all = s.steps * s.rows;
           const Tensor gates = by_step.view_as(Shape{all, 4 * s.hidden});
           if (into.wants(0))
             into.add(0, transpose(matmul(gates, weight_ih.get()).view_as(Shape{s.steps, s.rows, s.in}), 0, 1));
           if (into.wants(1)) into.add(1, matmul(gates, x_by_step.view_as(Shape{all, s.in}), {.transpose_a = true}));
           if (into.wants(2)) {
             // Each step's gates with the state before it.
             const int64_t pairs = s.steps > 1 ? s.steps - 1 : 0, later = reverse ? 0 : 1, flat = pairs * s.rows;
             into.add(2, pairs == 0 ? zeros(weight_hh.get().shape(), grad.dtype())
                                    : matmul(by_step.view_rows(later, later + pairs).view_as(Shape{flat, 4 * s.hidden}),
                                             state.h.view_rows(1 - later, 1 - later + pairs).view_as(Shape{flat, s.hidden}),
                                             {.transpose_a = true}));
           }
           if (!into.wants(3) && !into.wants(4)) return;
           const Tensor bias = sum_rows(gates);
           into.add(3, bias);
           into.add(4, bias);
         });
  return out;
}

}  // namespace tessera
