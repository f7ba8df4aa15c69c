#include "tessera/scatter/segment_softmax.h"

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/rows.h"
#include "tessera/scatter/segment_logsumexp.h"
#include "tessera/scatter/segment_plan_state.h"
#include "tessera/scatter/segment_softmax_kernels.h"

namespace tessera {
namespace {

void check_float_rows(const char* op, const Tensor& x, const SegmentPlan& plan) {
  check_rows(op, x, plan);
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
}

Tensor by_plan(SegmentSoftmax op, const SegmentPlan& plan, const Tensor& x, const Tensor& grad, const Tensor& lse,
               const Tensor& initial) {
  const SegmentView view = SegmentPlanState::view(plan);
  const int64_t width = row_width(x);
  Tensor out = Tensor::empty(op == SegmentSoftmax::logsumexp ? x.shape().with(0, plan.num_segments()) : x.shape(), x.dtype(),
                             x.device());
  Scratch<char> partials(view.num_slots * 2 * width * int64_t(size_of(x.dtype())));
  run<SegmentSoftmaxKernel>(x.device(), {.op = op,
                                         .is_double = x.dtype() == DType::f64,
                                         .plan = view,
                                         .width = width,
                                         .x = x.raw(),
                                         .grad = grad.defined() ? grad.raw() : nullptr,
                                         .lse = lse.defined() ? lse.raw() : nullptr,
                                         .initial = initial.defined() ? initial.raw() : nullptr,
                                         .out = out.mutable_raw(),
                                         .partials = partials.data()});
  return out;
}

/// grad exp(initial - lse), 0 where lse is -inf.
Tensor initial_gradient(const Tensor& grad, const Tensor& initial, const Tensor& lse) {
  Tensor out = Tensor::empty(grad.shape(), grad.dtype(), grad.device());
  with_float(grad.dtype(), "segment_logsumexp", [&]<class T>() {
    const T* g = grad.data<T>();
    const T* first = initial.data<T>();
    const T* total = lse.data<T>();
    T* to = out.mutable_data<T>();
    parallel_for(grad.numel(), 1 << 12, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = total[i] == -INFINITY ? T(0) : g[i] * std::exp(first[i] - total[i]);
    });
  });
  return out;
}

}  // namespace

Tensor segment_softmax(const Tensor& x, const SegmentPlan& plan) {
  check_float_rows("segment_softmax", x, plan);
  Tensor out = by_plan(SegmentSoftmax::softmax, plan, x, {}, {}, {});
  record("segment_softmax", out, {x}, [plan, y = Saved(out)](const Tensor& grad, Gradients& into) {
    into.add(0, by_plan(SegmentSoftmax::softmax_grad, plan, y.get(), grad, {}, {}));
  });
  return out;
}

Tensor segment_logsumexp(const Tensor& x, const SegmentPlan& plan, const Tensor& initial) {
  check_float_rows("segment_logsumexp", x, plan);
  if (initial.defined()) {
    const Shape needed = x.shape().with(0, plan.num_segments());
    check(initial.shape() == needed, "segment_logsumexp: initial has shape {} but the output has {}", initial.shape(),
          needed);
    check(initial.dtype() == x.dtype(), "segment_logsumexp: initial is {} but the rows are {}", initial.dtype(), x.dtype());
  }
  Tensor out = by_plan(SegmentSoftmax::logsumexp, plan, x, {}, {}, initial);
  record("segment_logsumexp", out, {x, initial},
         [plan, x = Saved(x), initial = Saved(initial), lse = Saved(out)](const Tensor& grad, Gradients& into) {
           if (into.wants(0)) into.add(0, by_plan(SegmentSoftmax::logsumexp_grad, plan, x.get(), grad, lse.get(), {}));
           if (into.wants(1)) into.add(1, initial_gradient(grad, initial.get(), lse.get()));
         });
  return out;
}

}  // namespace tessera
