#pragma once

#include <memory>
#include <vector>

#include "tessera/sparse/graph.h"
#include "tessera/sparse/spmm_kernels.h"

namespace tessera {

/// The edges of a graph by blocks of kSourceBlock sources, and by destination within a block. While a block is walked, its
/// rows of x are in the third-level cache, wherever the sources of an edge lie.
struct SourceBlocks {
  std::vector<uint16_t> source;       ///< edges: the source's place in its block; then some of zero, to prefetch
  std::vector<Run> runs;              ///< of edges that share a block and a destination
  std::vector<RunChunk> chunks;       ///< of runs
  std::vector<int64_t> block_chunks;  ///< blocks + 1: a block's chunks
};

/// The blocks of a graph for a sum over sources of rows of `width` floats, made once and kept on it; null where walking
/// whole rows is the better way, and then `why` is told. The rule knows sizes alone, not the machine, so that a sum has the
/// same order everywhere:
///  - x has 32 columns or more, and 64 of them, or all, are more than 32 MB, which a third-level cache holds little of,
///  - at most 64 blocks, and at least 4 edges a run on average: a run reads and writes a row of the result,
///  - no run is longer than 16384 edges, since one thread walks it.
/// Memory: 2 bytes an edge and 8 a run. Cost: about two walks over the edges.
std::shared_ptr<const SourceBlocks> source_blocks(const Graph& graph, int64_t width, const char** why);

}  // namespace tessera
