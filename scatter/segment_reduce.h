#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/reduce.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

struct SegmentReduceOptions {
  Tensor initial;               ///< content of the output before, of its shape and dtype; undefined: none
  bool include_initial = true;  ///< it takes part as one more row; false: it only stays where a segment is empty
  Tensor* winner = nullptr;     ///< max, min: receives the row that each element came from, i64 of the output's shape, or -1
};

/// Rows of x reduced by segment:
///
///     out[s] = reduce over rows e of segment s of x[e]
///
/// reduce: sum, mean, max, min or mul. An initial content that takes part comes before all rows; a mean counts it.
/// An empty segment gives the initial content, without one 0 (mul: 1) and winner -1. An x without columns gives none.
/// x (E, ...), f32, f64, bf16 or f16 (mul: f32 and f64; max and min: i32 too, without a gradient); out (S, ...), same dtype.
/// 16-bit elements are added, counted and compared in float and rounded once.
/// Gradients: x and initial. Of a maximum or minimum the winner gets the whole gradient: among equal values the initial
/// content, then the lowest row; NaN wins over numbers. Of a product the product of the others, right with any zeros.
/// The same bits for every thread count: a segment is summed in its own order, one of more than 4096 rows in pieces of
/// 4096 that are added in order. Memory: out's size (max, min: and 4 bytes an element to remember the winners).
/// Errors: InvalidArgument for shapes and dtypes, naming them; Unsupported for dtypes, and for max or min of a segment of
/// more than 2^31 - 1 rows.
/// Schedule: scatter/segment_reduce_cpu.cpp.
Tensor segment_reduce(const Tensor& x, const SegmentPlan& plan, Reduce reduce = Reduce::sum,
                      const SegmentReduceOptions& options = {});

/// Variance of each segment's rows, by column:
///
///     out[s] = sum over rows e of segment s of (x[e] - mean[s])^2 / max(n[s] - correction, 1)
///
/// An empty segment gives 0, and so does one of a single row. x (E, ...), f32 or f64; out (S, ...). correction 1: unbiased.
/// Two passes over x, so that a large mean does not swallow the variance.
/// Gradient: 2 (x[e] - mean[s]) / max(n[s] - correction, 1). Memory: twice out's size.
/// Errors: InvalidArgument for shapes; Unsupported for other dtypes.
Tensor segment_var(const Tensor& x, const SegmentPlan& plan, int correction = 1);

/// Its square root. Gradient: (x[e] - mean[s]) / (std[s] max(n[s] - correction, 1)), and 0 where std is 0.
Tensor segment_std(const Tensor& x, const SegmentPlan& plan, int correction = 1);

}  // namespace tessera
