#pragma once

#include <cstdint>

/// How segments of rows are cut into pieces of work. No std header: kernel files include it.
namespace tessera {

/// A segment of more rows is a hub: it is cut every so many rows, whatever the thread count, so that several threads can
/// share it; partial results are combined in order.
inline constexpr int64_t kHubRows = 4096;

/// A chunk ends before its cost, one per row and kSegmentCost per segment, would pass this.
inline constexpr int64_t kSegmentChunkCost = 1024;
inline constexpr int64_t kSegmentCost = 4;

/// Whole segments [segment_begin, segment_end), or a piece of one hub, with partial result number `slot`.
struct SegmentChunk {
  int64_t begin, end;  // places in the plan's order
  int32_t segment_begin, segment_end;
  int64_t slot;  // -1 for whole segments
};

/// A hub and the numbers of its partial results, in the order of its rows.
struct SegmentHub {
  int64_t segment;
  int64_t slot_begin, slot_end;
};

/// A plan as kernels see it.
struct SegmentView {
  int64_t num_segments, num_rows;
  const int64_t* offsets;  // num_segments + 1
  const int64_t* order;    // row of each place, or null: the place itself
  const SegmentChunk* chunks;
  int64_t num_chunks;
  const SegmentHub* hubs;
  int64_t num_hubs;
  int64_t num_slots;
};

/// Element types of the scatter kernels.
enum class FloatType : uint8_t { f32, f64, bf16, f16 };

}  // namespace tessera
