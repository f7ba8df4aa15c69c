#pragma once

#include <cstdint>

#include "tessera/core/dtype.h"
#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/scatter/segment_schedule.h"

/// What the ops on rows check and count alike.
namespace tessera {

/// Elements of one row of dimension 0.
inline int64_t row_width(const Tensor& x) {
  int64_t width = 1;
  for (int i = 1; i < x.ndim(); ++i) width *= x.dim(i);
  return width;
}

/// Errors: InvalidArgument unless the plan is defined and x has its rows.
inline void check_rows(const char* op, const Tensor& x, const SegmentPlan& plan) {
  check(plan.defined(), "{}: the plan is undefined", op);
  check(x.defined(), "{}: x is undefined", op);
  check(x.ndim() >= 1 && x.dim(0) == plan.num_rows(), "{}: x has shape {} but the plan has {} rows, so it needs [{}, ...]",
        op, x.shape(), plan.num_rows(), plan.num_rows());
}

/// Errors: Unsupported unless a floating type.
inline FloatType float_type(const char* op, DType dtype) {
  switch (dtype) {
    case DType::f32: return FloatType::f32;
    case DType::f64: return FloatType::f64;
    case DType::bf16: return FloatType::bf16;
    case DType::f16: return FloatType::f16;
    default: fail<Unsupported>("{}: dtype {} is not supported, use f32, f64, bf16 or f16", op, dtype);
  }
}

/// Errors of a reduction to `out`, by the contracts of segment_reduce and scatter_reduce.
inline void check_reduction(const char* op, const Shape& out, DType dtype, Reduce reduce,
                            const SegmentReduceOptions& options) {
  const Tensor& initial = options.initial;
  if (initial.defined()) {
    check(initial.shape() == out, "{}: initial has shape {} but the output has {}", op, initial.shape(), out);
    check(initial.dtype() == dtype, "{}: initial is {} but the rows are {}", op, initial.dtype(), dtype);
  }
  check(reduce == Reduce::max || reduce == Reduce::min || options.winner == nullptr,
        "{}: reduce {} has no winner, only max and min have", op, name(reduce));
  if (dtype == DType::i32) return;
  float_type(op, dtype);
  check<Unsupported>(reduce != Reduce::mul || size_of(dtype) > 2,
                     "{}: reduce mul with dtype {} is not supported, use f32 or f64", op, dtype);
}

/// `segment_reduce` of rows that were checked, under the name of another op. `op` is a literal.
Tensor segment_reduce_as(const char* op, const Tensor& x, const SegmentPlan& plan, Reduce reduce,
                         const SegmentReduceOptions& options);

}  // namespace tessera
