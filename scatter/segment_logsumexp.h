#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// Logarithm of the sum of exponentials of each segment's rows, by column:
///
///     out[s] = ln(exp(initial[s]) + sum over rows e of segment s of exp(x[e]))
///
/// shifted by the largest term. Without `initial` that term is missing, and a segment without rows gives -inf; so does one
/// of -inf alone. NaN gives NaN.
/// x (E, ...), f32 or f64; out (S, ...), same dtype; initial of out's shape or undefined.
/// Gradients: x[e] gets grad[s] exp(x[e] - out[s]), initial grad[s] exp(initial[s] - out[s]); both 0 where out is -inf.
/// Memory: out. The same bits for every thread count.
/// Errors: InvalidArgument for shapes and dtypes; Unsupported for other dtypes.
Tensor segment_logsumexp(const Tensor& x, const SegmentPlan& plan, const Tensor& initial = {});

}  // namespace tessera
