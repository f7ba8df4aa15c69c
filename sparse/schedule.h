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

}  // namespace tessera
