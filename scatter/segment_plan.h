#pragma once

#include <memory>

#include "tessera/core/tensor.h"

namespace tessera {

struct SegmentPlanState;

/// Where the rows of each segment are: one stable counting sort of a segment id per row, shared by the forward pass, the
/// backward pass and later epochs. An immutable handle; copies share the arrays and what is computed from them once on
/// demand, which is safe from several threads.
///
/// Make one when an index is used more than once (`segment_reduce`, `gather`, `segment_softmax` take it); a `scatter_reduce`
/// or `gather` with a bare index makes what it needs for itself, every time.
class SegmentPlan {
 public:
  SegmentPlan() = default;

  /// index i32 or i64 (E): row e belongs to segment index[e]. A sorted index is recognised and needs no order.
  /// Memory: 4 bytes per row, 8 more when unsorted, and about 12 of scratch meanwhile.
  /// Errors: InvalidArgument naming the first id outside [0, num_segments) and its position; more than 2^31 - 1 segments.
  static SegmentPlan from_index(const Tensor& index, int64_t num_segments);
  /// Segments of consecutive rows: segment s is rows [offsets[s], offsets[s + 1]); offsets i64 (S + 1).
  /// Errors: InvalidArgument for offsets that do not start at 0 or fall.
  static SegmentPlan from_offsets(const Tensor& offsets);

  bool defined() const { return state_ != nullptr; }
  int64_t num_segments() const;
  int64_t num_rows() const;
  /// i64 (num_segments + 1): where each segment starts in `order`.
  const Tensor& offsets() const;
  /// Row of each place, segment by segment, ascending within one: i64 (E); undefined when it is the place itself.
  const Tensor& order() const;
  /// Segment of each row: i32 (E).
  const Tensor& segment_of_row() const;
  /// Rows of each segment: i64 (num_segments).
  Tensor counts() const;

  /// Whether both are handles of one plan.
  bool is(const SegmentPlan& other) const { return state_ == other.state_; }

 private:
  friend struct SegmentPlanState;
  explicit SegmentPlan(std::shared_ptr<SegmentPlanState> state) : state_(std::move(state)) {}
  std::shared_ptr<SegmentPlanState> state_;
};

}  // namespace tessera
