// A sum over edges by blocks of sources, on CPUs: for graphs whose x is much larger than the caches and whose edges come
// from everywhere. A block's rows of x, 4 MB of them (16384 rows of a panel of 64 columns), are read from memory once and
// from the third-level cache for every edge after that; in exchange a row of the result is read and written for each block
// that it has edges from. Sources are places in their block, two bytes each.
//
// Panels of columns are the outer loop, blocks the next; all threads walk the same block, whose rows they share. Of rows
// wider than a panel the block's part is copied together first: at a distance of a power of two it would share few of the
// cache's sets. A row's scale, bias and relu come with its last run.
//
// Cost, 233k nodes and 23M shuffled edges: 15 blocks, 6.6 edges a run; docs/KERNELS.md has what that gains.
// Source: cache blocking by sources as in DGL's spmm_blocking_libxsmm.h, with the blocks kept instead of made for every
// call.

#include "tessera/core/parallel.h"
#include "tessera/sparse/spmm_sum_kernels.h"

namespace tessera {
namespace {

constexpr int64_t kDistance = 16;  // edges that a row is prefetched ahead

/// A block's rows of x from a panel's first column on, `step` apart, and their scales.
struct Sources {
  const float* x;
  int64_t step;
  const float* scales;
};

/// Columns [offset, offset + last + C) of a chunk of runs.
template <int C, int V, bool kScaled>
void sum_runs(const SpmmBlockedKernel::Args& k, const SumView<float>& a, const RunChunk& chunk, const Sources& from,
              int64_t offset, int64_t last) {
  using B = Block<float, C>;
  const float *x = from.x, *scales = from.scales;
  const int64_t width = a.k.width, step = from.step;
  const uint16_t* source = k.source + chunk.edge_begin;
  const auto at = [last](int v) __attribute__((always_inline)) { return v == V - 1 ? last : v * C; };
  for (int64_t r = chunk.run_begin; r < chunk.run_end; ++r) {
    const Run run = k.runs[r];
    float* out = a.out + run.row * width + offset;
    B sum[V];
    if (!run.first)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[v] = B::load(out + at(v));
    for (const uint16_t* end = source + run.edges; source < end; ++source) {
      prefetch_tile<float, C, V, 3>(x + source[kDistance] * step, last);
      const float* row = x + *source * step;
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        if constexpr (kScaled)
          sum[v].add(B::load(row + at(v)), scales[*source]);
        else
          sum[v].add(B::load(row + at(v)));
      }
    }
    if (run.last) {
      const float scale = row_scale(a, run.row);
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        sum[v].scale(scale);
        if (a.bias != nullptr) sum[v].add_bias(a.bias + offset + at(v));
        if (a.k.relu) sum[v].relu();
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[v].store(out + at(v));
  }
}

using SumRuns = void (*)(const SpmmBlockedKernel::Args&, const SumView<float>&, const RunChunk&, const Sources&, int64_t,
                         int64_t);

/// The function for tiles of `blocks` vectors, 1 to V.
template <int C, int V>
SumRuns function_of(int64_t blocks, bool scaled) {
  if constexpr (V > 1)
    if (blocks < V) return function_of<C, V - 1>(blocks, scaled);
  return scaled ? sum_runs<C, V, true> : sum_runs<C, V, false>;
}

}  // namespace

template <Isa>
void SpmmBlockedKernel::cpu(const Args& k) {
  constexpr int C = simd::kLanes<float>, kMost = C * simd::kRegisters / 2 < SpmmBlockedKernel::kPanel
                                                     ? simd::kRegisters / 2
                                                     : int(SpmmBlockedKernel::kPanel) / C;
  const SumView<float> a{SpmmView<float>(k.spmm), Fetch::near, false};
  const int64_t width = k.spmm.width, vectors = (width + C - 1) / C, tiles = (vectors + kMost - 1) / kMost;
  int64_t vector = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t held = vectors / tiles + (tile < vectors % tiles ? 1 : 0), offset = vector * C;
    vector += held;
    const int64_t last = (vector == vectors ? width : vector * C) - C - offset;
    const SumRuns run = function_of<C, kMost>(held, k.spmm.src_scale != nullptr);
    for (int64_t b = 0; b < k.num_blocks; ++b) {
      const RunChunk* chunks = k.chunks + k.block_chunks[b];
      const int64_t first = b * kSourceBlock,
                    sources = k.spmm.x_rows - first < kSourceBlock ? k.spmm.x_rows - first : kSourceBlock;
      Sources from{a.x + first * width + offset, width, a.src_scale != nullptr ? a.src_scale + first : nullptr};
      if (tiles > 1) {
        parallel_for(sources, 1024, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            for (int64_t j = 0; j < last + C; ++j) k.panel[i * (last + C) + j] = from.x[i * width + j];
        });
        from.x = k.panel;
        from.step = last + C;
      }
      parallel_for(k.block_chunks[b + 1] - k.block_chunks[b], chunk_grain(held * C), [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) run(k, a, chunks[c], from, offset, last);
      });
    }
  }
}
template void SpmmBlockedKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
