// Everything that does not wait for the last state is one matrix product for all steps: the inputs' share of the gates, and
// in the backward pass the gradients of inputs and weights. A step is one product with W_hh and one pass over its gates.
// Inside, time comes first, so that a step is a contiguous block.

#include "tessera/core/ops/lstm.h"

#include <cstring>
#include <utility>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/lstm_kernels.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/storage16.h"

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
        "lstm: weight_ih is {} {} but needs to be {} [{}, {}]", w.weight_ih.dtype(), w.weight_ih.shape(), x.dtype(),
        4 * hidden, x.dim(2));
  for (const Tensor* bias : {&w.bias_ih, &w.bias_hh})
    check(!bias->defined() || (bias->shape() == Shape{4 * hidden} && bias->dtype() == x.dtype()),
          "lstm: a bias is {} {} but needs to be {} [{}]", bias->defined() ? bias->dtype() : x.dtype(),
          bias->defined() ? bias->shape() : Shape{}, x.dtype(), 4 * hidden);
  return {x.dim(0), x.dim(1), x.dim(2), hidden};
}

/// Step `t` of a (steps, rows, width) array.
Tensor step_of(const Tensor& all, int64_t t) { return all.view_rows(t, t + 1).view_as(Shape{all.dim(1), all.dim(2)}); }

const void* raw_step(const Tensor& all, int64_t t) { return all.view_rows(t, t + 1).raw(); }

/// What the forward pass leaves: every step's gates after activation, and its states.
struct Pass {
  Tensor gates, c, h;  // (steps, rows, 4 hidden), (steps, rows, hidden); h also holds the last c, when it is asked for
};

Pass run_forward(const Tensor& x_by_step, const LstmWeights& w, const LstmState& initial, const Sizes& s, bool reverse,
                 bool with_last_c) {
  Tensor bias;
  if (w.bias_ih.defined() && w.bias_hh.defined())
    bias = add(w.bias_ih.detach(), w.bias_hh.detach());
  else if (w.bias_ih.defined() || w.bias_hh.defined())
    bias = (w.bias_ih.defined() ? w.bias_ih : w.bias_hh).detach();
  const DType dtype = x_by_step.dtype();
  Pass pass{
      matmul(x_by_step.view_as(Shape{s.steps * s.rows, s.in}), w.weight_ih.detach(), {.transpose_b = true, .bias = bias})
          .view_as(Shape{s.steps, s.rows, 4 * s.hidden}),
      Tensor::empty(Shape{s.steps, s.rows, s.hidden}, dtype),
      Tensor::empty(Shape{s.steps + (with_last_c ? 1 : 0), s.rows, s.hidden}, dtype)};
  const Tensor weight_hh = w.weight_hh.detach();
  for (int64_t n = 0; n < s.steps; ++n) {
    const int64_t t = reverse ? s.steps - 1 - n : n, before = reverse ? t + 1 : t - 1;
    const Tensor h_before = n > 0 ? step_of(pass.h, before) : initial.h.defined() ? initial.h.detach() : Tensor();
    const Tensor recurrent = h_before.defined() ? matmul(h_before, weight_hh, {.transpose_b = true}) : Tensor();
    const void* c_before = n > 0 ? raw_step(pass.c, before) : initial.c.defined() ? initial.c.raw() : nullptr;
    Tensor gates = step_of(pass.gates, t), c = step_of(pass.c, t), h = step_of(pass.h, t);
    run<LstmStepKernel>(x_by_step.device(), {dtype == DType::f64, s.rows, s.hidden, gates.mutable_raw(),
                                             recurrent.defined() ? recurrent.raw() : nullptr, c_before, c.mutable_raw(),
                                             h.mutable_raw(), nullptr, nullptr, false, nullptr});
  }
  if (with_last_c) {
    Tensor last = step_of(pass.h, s.steps);
    const Tensor from = s.steps > 0 ? step_of(pass.c, reverse ? 0 : s.steps - 1) : initial.c;
    if (!from.defined())
      std::memset(last.mutable_raw(), 0, size_t(last.numel()) * size_of(dtype));
    else if (last.numel() > 0)
      std::memcpy(last.mutable_raw(), from.raw(), size_t(last.numel()) * size_of(dtype));
  }
  return pass;
}

struct StepGradients {
  Tensor gates;  // of every step's gates before activation, (steps, rows, 4 hidden)
  Tensor h, c;   // of the initial state
};

/// `grad` is of Pass::h.
StepGradients run_backward(const Pass& pass, const Tensor& weight_hh, const Tensor& initial_c, const Tensor& grad,
                           const Sizes& s, bool reverse, bool wants_h) {
  const DType dtype = pass.gates.dtype();
  const bool with_last_c = grad.dim(0) > s.steps;
  StepGradients out{Tensor::empty(pass.gates.shape(), dtype), Tensor(),
                    with_last_c ? clone(step_of(grad, s.steps)) : Tensor::empty(Shape{s.rows, s.hidden}, dtype)};
  Tensor from_next;
  for (int64_t n = s.steps; n-- > 0;) {
    const int64_t t = reverse ? s.steps - 1 - n : n, before = reverse ? t + 1 : t - 1;
    Tensor of_gates = step_of(out.gates, t), gates = step_of(pass.gates, t), c = step_of(pass.c, t);
    const void* c_before = n > 0 ? raw_step(pass.c, before) : initial_c.defined() ? initial_c.raw() : nullptr;
    run<LstmStepKernel>(out.gates.device(),
                        {dtype == DType::f64, s.rows, s.hidden, const_cast<void*>(gates.raw()),
                         from_next.defined() ? from_next.raw() : nullptr, c_before, const_cast<void*>(c.raw()), nullptr,
                         raw_step(grad, t), out.c.mutable_raw(), n == s.steps - 1 && !with_last_c, of_gates.mutable_raw()});
    if (n > 0 || wants_h) from_next = matmul(of_gates, weight_hh);
  }
  if (wants_h) out.h = from_next.defined() ? from_next : zeros(Shape{s.rows, s.hidden}, dtype);
  if (s.steps == 0 && !with_last_c) out.c = zeros(Shape{s.rows, s.hidden}, dtype);
  return out;
}

/// All steps' states (steps, rows, hidden), followed by the last c when it is asked for; recorded.
Tensor by_steps(const Tensor& x, const LstmWeights& w, const LstmState& initial, const Sizes& s, bool reverse,
                bool with_last_c) {
  const Tensor x_by_step = transpose(x.detach(), 0, 1);
  const Pass pass = run_forward(x_by_step, w, initial, s, reverse, with_last_c);
  // The node keeps a handle of its own: one of its output would keep itself alive.
  Tensor out = pass.h.detach();
  record("lstm", out, {x, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, initial.h, initial.c},
         [x_by_step, weight_ih = Saved(w.weight_ih), weight_hh = Saved(w.weight_hh),
          first_h = s.steps > 0 ? Saved(initial.h) : Saved(), first_c = s.steps > 0 ? Saved(initial.c) : Saved(), pass, s,
          reverse](const Tensor& grad, Gradients& into) {
           StepGradients of = run_backward(pass, weight_hh.get(), first_c.get(), grad, s, reverse, into.wants(5));
           const int64_t all = s.steps * s.rows;
           const Tensor gates = of.gates.view_as(Shape{all, 4 * s.hidden});
           if (into.wants(0))
             into.add(0, transpose(matmul(gates, weight_ih.get()).view_as(Shape{s.steps, s.rows, s.in}), 0, 1));
           if (into.wants(1)) into.add(1, matmul(gates, x_by_step.view_as(Shape{all, s.in}), {.transpose_a = true}));
           if (into.wants(2)) {
             // Each step's gates with the state before it.
             const int64_t pairs = s.steps > 1 ? s.steps - 1 : 0, later = reverse ? 0 : 1, flat = pairs * s.rows;
             Tensor sum = pairs == 0 ? zeros(weight_hh.get().shape(), grad.dtype())
                                     : matmul(of.gates.view_rows(later, later + pairs).view_as(Shape{flat, 4 * s.hidden}),
                                              pass.h.view_rows(1 - later, 1 - later + pairs).view_as(Shape{flat, s.hidden}),
                                              {.transpose_a = true});
             if (first_h.defined() && s.steps > 0)
               sum = add(sum, matmul(step_of(of.gates, reverse ? s.steps - 1 : 0), first_h.get(), {.transpose_a = true}));
             into.add(2, std::move(sum));
           }
           if (into.wants(3) || into.wants(4)) {
             const Tensor bias = sum_rows(gates);
             if (into.wants(3)) into.add(3, bias);
             if (into.wants(4)) into.add(4, bias);
           }
           if (into.wants(5)) into.add(5, std::move(of.h));
           if (into.wants(6)) into.add(6, std::move(of.c));
         });
  return out;
}

LstmWeights widened(const LstmWeights& w) {
  return {widened(w.weight_ih), widened(w.weight_hh), widened(w.bias_ih), widened(w.bias_hh)};
}

}  // namespace

Tensor lstm(const Tensor& x, const LstmWeights& w, bool reverse) {
  if (is_storage16(x.dtype())) return through_f32(x, [&](const Tensor& wide) { return lstm(wide, widened(w), reverse); });
  return transpose(by_steps(x, w, {}, checked(x, w), reverse, false), 0, 1);
}

LstmResult lstm(const Tensor& x, const LstmWeights& w, const LstmState& initial, bool reverse) {
  if (is_storage16(x.dtype())) {
    LstmResult wide = lstm(cast(x, DType::f32), widened(w), {widened(initial.h), widened(initial.c)}, reverse);
    return {cast(wide.out, x.dtype()), {cast(wide.last.h, x.dtype()), cast(wide.last.c, x.dtype())}};
  }
  const Sizes s = checked(x, w);
  const Shape state{s.rows, s.hidden};
  for (const auto& [part, value] : {std::pair("h", &initial.h), {"c", &initial.c}})
    check(!value->defined() || (value->shape() == state && value->dtype() == x.dtype()),
          "lstm: the initial {} is {} {} but needs to be {} {}", part, value->defined() ? value->dtype() : x.dtype(),
          value->defined() ? value->shape() : Shape{}, x.dtype(), state);
  const Tensor steps = by_steps(x, w, initial, s, reverse, true);
  const int64_t last = reverse ? 0 : s.steps - 1;
  const Tensor out = transpose(slice(steps, 0, 0, s.steps), 0, 1);
  // Copies: what is changed in them must not change what the backward pass reads.
  const Tensor h = s.steps > 0 ? reshape(slice(out, 1, last, last + 1), state)
                               : add(zeros(state, x.dtype()), initial.h.defined() ? initial.h : zeros(state, x.dtype()));
  return {out, {h, reshape(slice(steps, 0, s.steps, s.steps + 1), state)}};
}

}  // namespace tessera
