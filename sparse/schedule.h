#pragma once

#include <cstdint>

/// How the rows of a graph are cut into pieces of work for kernels that walk them. No std header: kernel files include it.
namespace tessera {

/// A row of more edges is a hub: it is cut every so many edges, whatever the thread count, so that several threads can
/// share it; partial results are combined in order.
inline constexpr int64_t kHubEdges = 4096;

/// A chunk ends before its cost, one per edge and kRowCost per row, would pass this; a longer row is a chunk of its own.
inline constexpr int64_t kChunkCost = 1024;
inline constexpr int64_t kRowCost = 4;

/// Whole rows [row_begin, row_end), or a piece of one hub row, with partial result number `slot`.
struct Chunk {
  int64_t edge_begin, edge_end;  // positions in col
  int32_t row_begin, row_end;
  int64_t slot;  // -1 for whole rows
};

/// A hub row and the numbers of its partial results, in the order of its edges.
struct Hub {
  int64_t row;
  int64_t slot_begin, slot_end;
};

/// Where rows that are gathered some edges later are prefetched to: nowhere when their array is in the second-level cache
/// anyway, to the first level from the third, and only to the second from memory, since that one can wait for several times
/// as many lines at once. Measured on Zen 4, 60 MB of rows, against no prefetch: 1.1 times as fast into the first level at
/// the best distance, 1.7 into the second.
enum class Fetch : uint8_t { none, near, far };
inline constexpr int64_t kNearBytes = int64_t{1} << 20;
inline constexpr int64_t kFarBytes = int64_t{16} << 20;

[[gnu::always_inline]] inline Fetch fetch_of(int64_t array_bytes) {
  return array_bytes <= kNearBytes ? Fetch::none : array_bytes <= kFarBytes ? Fetch::near : Fetch::far;
}

/// Edges between a prefetch and its use, for rows of so many cache lines: about 256 lines on their way from memory.
[[gnu::always_inline]] constexpr int64_t fetch_distance(Fetch fetch, int64_t lines) {
  return fetch != Fetch::far ? 16 : lines <= 4 ? 64 : lines >= 32 ? 8 : 256 / lines;
}

}  // namespace tessera
