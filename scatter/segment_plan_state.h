#pragma once

#include <vector>

#include "tessera/core/once.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/scatter/segment_schedule.h"

/// What is behind a SegmentPlan handle, for files that run kernels over it.
namespace tessera {

struct SegmentSchedule {
  std::vector<SegmentChunk> chunks;
  std::vector<SegmentHub> hubs;
  int64_t slots = 0;    // partial results of all hubs
  int64_t longest = 0;  // rows of the largest segment
};

/// Chunks of about equal rows, hubs cut every kHubRows.
SegmentSchedule make_segment_schedule(const int64_t* offsets, int64_t num_segments);

struct SegmentPlanState {
  int64_t num_segments = 0, num_rows = 0;
  Tensor offsets, order;
  Once<Tensor> segment_of_row;
  Once<SegmentSchedule> schedule;

  static SegmentPlanState& of(const SegmentPlan& plan) { return *plan.state_; }
  static const SegmentSchedule& schedule_of(const SegmentPlan& plan);
  static SegmentView view(const SegmentPlan& plan);
  /// Of checked ids, i32 (E) that nobody else changes.
  static SegmentPlan of_ids(Tensor ids, int64_t num_segments);
};

}  // namespace tessera
