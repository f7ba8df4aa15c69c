#include "tessera/scatter/segment_spread.h"

#include "tessera/core/kernel.h"
#include "tessera/scatter/rows.h"
#include "tessera/scatter/segment_plan_state.h"

namespace tessera {

Tensor segment_spread(SpreadOp op, const SegmentPlan& plan, const Tensor& grad, const SpreadInputs& inputs) {
  const auto raw_or_null = [](const Tensor& tensor) { return tensor.defined() ? tensor.raw() : nullptr; };
  Tensor out = Tensor::empty(grad.shape().with(0, plan.num_rows()), grad.dtype(), grad.device());
  const SegmentView view = SegmentPlanState::view(plan);
  Scratch<char> partials(op == SpreadOp::product ? 2 * view.num_slots * row_width(grad) * int64_t(size_of(grad.dtype()))
                                                 : 0);
  run<SegmentSpreadKernel>(grad.device(), {.type = float_type("segment_spread", grad.dtype()),
                                           .op = op,
                                           .plan = view,
                                           .width = row_width(grad),
                                           .x = raw_or_null(inputs.x),
                                           .grad = grad.raw(),
                                           .center = raw_or_null(inputs.center),
                                           .initial = raw_or_null(inputs.initial),
                                           .winner = inputs.winner.defined() ? inputs.winner.data<int32_t>() : nullptr,
                                           .out = out.mutable_raw(),
                                           .partials = partials.data()});
  return out;
}

}  // namespace tessera
