#include "tessera/scatter/segment_spread.h"

#include "tessera/core/kernel.h"
#include "tessera/scatter/rows.h"
#include "tessera/scatter/segment_plan_state.h"

namespace tessera {

Tensor segment_spread(SpreadOp op, const SegmentPlan& plan, const Tensor& grad, const SpreadInputs& inputs) {
  const auto raw_or_null = [](const Tensor& tensor) { return tensor.defined() ? tensor.raw() : nullptr; };
  Tensor out = Tensor::empty(grad.shape().with(0, plan.num_rows()), grad.dtype(), grad.device());
  run<SegmentSpreadKernel>(grad.device(), {.type = float_type("segment_spread", grad.dtype()),
                                           .op = op,
                                           .plan = SegmentPlanState::view(plan),
                                           .width = row_width(grad),
                                           .x = raw_or_null(inputs.x),
                                           .grad = grad.raw(),
                                           .center = raw_or_null(inputs.center),
                                           .initial = raw_or_null(inputs.initial),
                                           .winner = inputs.winner.defined() ? inputs.winner.data<int32_t>() : nullptr,
                                           .out = out.mutable_raw()});
  return out;
}

}  // namespace tessera
