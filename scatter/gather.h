#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// Rows of x by index:
///
///     out[e] = x[index[e]]
///
/// No index gives no rows. x (N, ...), any dtype; index i32 or i64 (E); out (E, ...), same dtype.
/// Gradient: x, by summing the rows of each id, when floating (`segment_reduce`: no atomics, the same bits for every thread
/// count). The ids are sorted when it is asked for, every time: with an index that stays, use the second form.
/// Memory: out. Errors: InvalidArgument naming the first id outside [0, N) and its position, and for shapes and dtypes.
Tensor gather(const Tensor& x, const Tensor& index);

/// The same with the index that the plan was made from: out[e] = x[plan.segment_of_row()[e]]; x (num_segments, ...). The
/// gradient goes by the plan.
Tensor gather(const Tensor& x, const SegmentPlan& plan);

}  // namespace tessera
