// Edges are sorted by block with one counting sort: ranges of destinations count their edges and runs in each block, the
// counts are added up block by block, and then every range writes its own, in the order of its rows. Within a row of a block
// edges keep their order.

#include "tessera/sparse/source_blocks.h"

#include <algorithm>

#include "tessera/core/parallel.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {
namespace {

constexpr int64_t kManyBytes = int64_t{32} << 20;
constexpr int64_t kMostBlocks = 64;
constexpr int64_t kLeastEdges = 4;  // a run, on average
constexpr int64_t kLongestRun = 4 * kHubEdges;
constexpr int64_t kRanges = 256;
constexpr int64_t kPrefetched = 64;

struct Count {
  int64_t edges = 0, runs = 0;
};

/// Calls f(block, edges) for the runs of row d, blocks in turn; a row without edges has an empty run in block 0.
/// `edges`: zeros, one a block, before and after.
template <class F>
void for_runs(const int64_t* rowptr, const int32_t* col, int64_t d, std::vector<int64_t>& edges, F f) {
  if (rowptr[d] == rowptr[d + 1]) return f(0, 0);
  for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) ++edges[size_t(col[k] / kSourceBlock)];
  for (size_t b = 0; b < edges.size(); ++b) {
    if (edges[b] > 0) f(int64_t(b), edges[b]);
    edges[b] = 0;
  }
}

std::shared_ptr<const SourceBlocks> make(const Graph& graph) {
  const int64_t rows = graph.num_dst(), blocks = (graph.num_src() + kSourceBlock - 1) / kSourceBlock;
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  // Ranges of about equal numbers of edges.
  std::vector<int64_t> cut(kRanges + 1, rows);
  for (int64_t r = 0; r < kRanges; ++r)
    cut[size_t(r)] = std::lower_bound(rowptr, rowptr + rows, graph.num_edges() / kRanges * r) - rowptr;
  cut[0] = 0;
  std::vector<Count> counts(size_t(kRanges * blocks));
  std::vector<int64_t> longest(kRanges, 0);
  parallel_for(kRanges, 1, [&](int64_t first, int64_t last) {
    std::vector<int64_t> of_block(static_cast<size_t>(blocks));
    for (int64_t r = first; r < last; ++r)
      for (int64_t d = cut[size_t(r)]; d < cut[size_t(r) + 1]; ++d)
        for_runs(rowptr, col, d, of_block, [&](int64_t b, int64_t edges) {
          Count& count = counts[size_t(b * kRanges + r)];
          count.edges += edges;
          ++count.runs;
          longest[size_t(r)] = std::max(longest[size_t(r)], edges);
        });
  });
  Count all;
  for (Count& count : counts) {
    const Count mine = count;
    count = all;
    all.edges += mine.edges;
    all.runs += mine.runs;
  }
  if (all.edges < kLeastEdges * all.runs || *std::max_element(longest.begin(), longest.end()) > kLongestRun) return nullptr;

  auto out = std::make_shared<SourceBlocks>();
  out->source.resize(size_t(all.edges + kPrefetched));
  out->runs.resize(size_t(all.runs));
  std::vector<int64_t> block_runs(size_t(blocks) + 1, all.runs), block_edges(size_t(blocks) + 1, all.edges);
  for (int64_t b = 0; b < blocks; ++b) {
    block_runs[size_t(b)] = counts[size_t(b * kRanges)].runs;
    block_edges[size_t(b)] = counts[size_t(b * kRanges)].edges;
  }
  parallel_for(kRanges, 1, [&](int64_t first, int64_t last) {
    std::vector<int64_t> of_block(static_cast<size_t>(blocks));
    std::vector<Count> at(static_cast<size_t>(blocks));
    for (int64_t r = first; r < last; ++r) {
      for (int64_t b = 0; b < blocks; ++b) at[size_t(b)] = counts[size_t(b * kRanges + r)];
      for (int64_t d = cut[size_t(r)]; d < cut[size_t(r) + 1]; ++d) {
        Run* latest = nullptr;
        for_runs(rowptr, col, d, of_block, [&](int64_t b, int64_t edges) {
          Run* run = &out->runs[size_t(at[size_t(b)].runs++)];
          *run = {int32_t(d), uint32_t(edges), latest == nullptr, false};
          latest = run;
        });
        latest->last = true;
        for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k)
          out->source[size_t(at[size_t(col[k] / kSourceBlock)].edges++)] = uint16_t(col[k] % kSourceBlock);
      }
    }
  });
  out->block_chunks.push_back(0);
  for (int64_t b = 0; b < blocks; ++b) {
    RunChunk chunk{block_edges[size_t(b)], block_runs[size_t(b)], block_runs[size_t(b)]};
    int64_t edge = chunk.edge_begin, cost = 0;
    for (int64_t run = chunk.run_begin; run < block_runs[size_t(b) + 1]; ++run) {
      const int64_t edges = out->runs[size_t(run)].edges;
      if (cost > 0 && cost + edges + kRowCost > kChunkCost) {
        chunk.run_end = run;
        out->chunks.push_back(chunk);
        chunk = {edge, run, run};
        cost = 0;
      }
      cost += edges + kRowCost;
      edge += edges;
    }
    chunk.run_end = block_runs[size_t(b) + 1];
    if (chunk.run_end > chunk.run_begin) out->chunks.push_back(chunk);
    out->block_chunks.push_back(int64_t(out->chunks.size()));
  }
  return out;
}

}  // namespace

std::shared_ptr<const SourceBlocks> source_blocks(const Graph& graph, int64_t width, const char** why) {
  const int64_t sources = graph.num_src();
  *why = "x is small";
  if (width < SpmmBlockedKernel::kPanel / 2 ||
      sources * std::min(width, SpmmBlockedKernel::kPanel) * int64_t(sizeof(float)) <= kManyBytes)
    return nullptr;
  *why = "too many sources for blocks of them";
  if (sources > kMostBlocks * kSourceBlock) return nullptr;
  *why = "a block of sources has too few edges to a row, or too many";
  return GraphState::of(graph).source_blocks.get([&] { return make(graph); });
}

}  // namespace tessera
