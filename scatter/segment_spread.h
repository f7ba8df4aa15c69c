#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/scatter/segment_spread_kernels.h"

namespace tessera {

struct SpreadInputs {
  Tensor x;        ///< (E, ...), for deviation and product
  Tensor center;   ///< (S, ...), for deviation; f64 when grad is, else f32
  Tensor initial;  ///< (S, ...), for product, or undefined
  Tensor winner;   ///< i32 (S, ...), for winner: the place within the segment, -1 for none
};

/// The step back from segments to rows that reductions have in common, for backward passes; not recorded:
///
///     winner      out[e] = grad[s] where e has the place winner[s] in its segment s, else 0
///     deviation   out[e] = (x[e] - center[s]) grad[s]
///     product     out[e] = grad[s] initial[s] * product over the segment's other rows k of x[k]
///
/// A segment without rows gives nothing. grad (S, ...), f32, f64, bf16 or f16 (product: f32 and f64); out (E, ...), same
/// dtype. Shapes and dtypes are the caller's to check. Errors: Unsupported for other dtypes. Memory: out.
Tensor segment_spread(SpreadOp op, const SegmentPlan& plan, const Tensor& grad, const SpreadInputs& inputs);

}  // namespace tessera
