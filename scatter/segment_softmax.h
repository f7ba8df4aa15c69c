#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// Softmax over the rows of each segment, by column:
///
///     y[e] = exp(x[e] - m[s]) / sum over rows k of segment s of exp(x[k] - m[s]),  s the segment of e
///
/// m[s] is the segment's own maximum: no segment sees another. A segment without rows gives nothing; one of -inf alone, or
/// that holds NaN, gives NaN; -inf beside numbers gives 0.
/// x (E, ...), f32 or f64, a column for each head; y the same.
/// Gradient: y[e] (grad[e] - sum over k of grad[k] y[k]), from y alone. Memory: y's size.
/// The same bits for every thread count; segments of more than 4096 rows are taken in pieces of 4096, joined in order.
/// Errors: InvalidArgument for shapes; Unsupported for other dtypes.
Tensor segment_softmax(const Tensor& x, const SegmentPlan& plan);

}  // namespace tessera
