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

/// Cuts [offsets[i], offsets[i + 1]) for i in [0, count) into chunks of about equal cost, hubs every kHubRows; says how many
/// slots that takes. Chunk and Hub: SegmentChunk and SegmentHub, or what sparse/ calls them.
template <class Chunk, class Hub>
int64_t cut_segments(const int64_t* offsets, int64_t count, std::vector<Chunk>& chunks, std::vector<Hub>& hubs) {
  int64_t first = 0;  // of the segments that are not in a chunk yet
  int64_t cost = 0, slots = 0;
  const auto close = [&](int64_t end) {
    if (first < end) chunks.push_back({offsets[first], offsets[end], int32_t(first), int32_t(end), -1});
    first = end;
    cost = 0;
  };
  for (int64_t s = 0; s < count; ++s) {
    const int64_t begin = offsets[s], end = offsets[s + 1], rows = end - begin;
    if (rows > kHubRows) {
      close(s);
      const int64_t slot = slots;
      for (int64_t p = begin; p < end; p += kHubRows)
        chunks.push_back({p, p + kHubRows < end ? p + kHubRows : end, int32_t(s), int32_t(s + 1), slots++});
      hubs.push_back({s, slot, slots});
      first = s + 1;
      continue;
    }
    if (cost + rows + kSegmentCost > kSegmentChunkCost) close(s);
    cost += rows + kSegmentCost;
  }
  close(count);
  return slots;
}

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
