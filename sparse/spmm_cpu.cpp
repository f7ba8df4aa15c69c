// Sparse times dense with a sum or a mean, on CPUs.
//
// The time is the time of fetching x's rows, so everything serves that: a tile of the result row (up to 8 vectors with 16
// registers, 16 with 32) stays in registers while the row's edges are walked, and is written once, finished: scaled, with
// bias and relu; columns are int32; an unweighted graph reads no factors; rows some edges ahead are prefetched
// (sparse/schedule.h); a large result bypasses the caches. Edge weights are gathered by edge id, for a chunk at a time, into
// a small buffer where their cache misses overlap, so the inner loop has three forms only: no factor, one per edge, one per
// source.
// Widths that are no multiple of the vector overlap the last two vectors of a row instead of masking: both compute the same
// columns from the same numbers. Narrow rows use narrower vectors, and several accumulators, since a row's sum would
// otherwise wait on the latency of one addition per edge.
// Work comes in chunks of about equal edges (sparse/graph.cpp); a hub row's pieces are summed on their own and added in
// order at the end. The order of a sum depends on the width and the instruction set only.
// The loop itself is in spmm_sum_kernels.h, for 16-bit elements (spmm_half_cpu.cpp) and weights per head
// (spmm_heads_cpu.cpp) too. Heads that are not their business are taken one at a time here: columns of one head have one
// weight.
//
// Sources: register tile and balance by edges as in GE-SpMM and merge-path SpMM (arXiv 2007.03179, 1803.08601), in
// PyTorch's SpmmReduceKernel of 2.0, and in FusedMM (arXiv 2011.06391).

#include "tessera/sparse/spmm_sum_kernels.h"

namespace tessera {
namespace {

template <class T, int C>
constexpr int kMostBlocks = C == simd::kLanes<T> ? (sizeof(T) == 4 ? simd::kRegisters / 2 : 4)
                            : C > 1              ? 2
                                                 : 1;

template <class T, int C, Factor kFactor>
SumChunk<T> tile_function(int64_t blocks, Fetch fetch) {
  constexpr int V = kMostBlocks<T, C>;
  if constexpr (sizeof(T) == 8) return sum_function<T, C, V, kFactor, kFetchAny>(blocks);
  switch (fetch) {
    case Fetch::none: return sum_function<T, C, V, kFactor, kFetchNone>(blocks);
    case Fetch::near: return sum_function<T, C, V, kFactor, kFetchNear>(blocks);
    case Fetch::far: break;
  }
  return sum_function<T, C, V, kFactor, kFetchFar>(blocks);
}

template <class T, int C>
Tiling<T> tiling(int64_t width, Factor factor, Fetch fetch) {
  if constexpr (C > 1)
    if (width < C) return tiling<T, C / 2>(width, factor, fetch);
  return tiling_of<T, C, kMostBlocks<T, C>>(width, [=](int64_t blocks) {
    return factor == kOne       ? tile_function<T, C, kOne>(blocks, fetch)
           : factor == kPerEdge ? tile_function<T, C, kPerEdge>(blocks, fetch)
                                : tile_function<T, C, kPerSource>(blocks, fetch);
  });
}

template <class T>
void spmm(const SpmmArgs& k) {
  if (k.width == 0) return;
  const Factor factor = k.weight != nullptr ? kPerEdge : k.src_scale != nullptr ? kPerSource : kOne;
  const int64_t columns = k.width / k.heads;
  const Tiling<T> t = tiling<T, simd::kLanes<T>>(columns, factor, fetch_of(k.x_rows * k.width * int64_t(sizeof(T))));
  sum_rows<T>(k, [&, factor, columns](const SumView<T>& a, const Chunk& chunk) {
    T buffer[kHubEdges];
    for (int64_t h = 0; h < k.heads; ++h)
      run_tiles(a, t, chunk, factor == kPerEdge ? edge_factors(a, chunk, h, T(1), buffer) : a.src_scale, h * columns,
                columns);
  });
}

}  // namespace

template <Isa>
void SpmmKernel::cpu(const Args& args) {
  args.type == FloatType::f64 ? spmm<double>(args) : spmm<float>(args);
}
template void SpmmKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
