// Sparse times dense with a sum or a mean, on CPUs.
//
// The time is the time of fetching x's rows, so everything serves that: a tile of the result row (up to 8 vectors with 16
// registers, 16 with 32) stays in registers while the row's edges are walked, and is written once; columns are int32;
// an unweighted graph reads no factors; rows some edges ahead are prefetched when x is larger than the cache that a core
// has for itself. Edge factors (a weight by edge id, a source scale) are gathered for a chunk at a time into a small
// buffer, where their cache misses overlap, so the inner loop has two forms only.
// Widths that are no multiple of the vector overlap the last two vectors of a row instead of masking: both compute the same
// columns from the same numbers. Narrow rows use narrower vectors, and several accumulators, since a row's sum would
// otherwise wait on the latency of one addition per edge.
// Work comes in chunks of about equal edges (sparse/graph.cpp); a hub row's pieces are summed on their own and added in
// order at the end. The order of a sum depends on the width and the instruction set only.
//
// Sources: register tile and balance by edges as in GE-SpMM and merge-path SpMM (arXiv 2007.03179, 1803.08601), in
// PyTorch's SpmmReduceKernel of 2.0, and in FusedMM (arXiv 2011.06391).

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/sparse/spmm_kernels.h"

namespace tessera {
namespace {

constexpr int kMaxVectors = simd::kRegisters / 2;    // of a tile
constexpr int64_t kAhead = 16;                       // edges between a prefetch and its use
constexpr int64_t kCachedBytes = 1 << 20;            // an x up to this size is not prefetched
constexpr int64_t kForkElements = int64_t{1} << 19;  // edges x width below which a second thread costs more than it brings

template <class T>
struct View {
  const SpmmKernel::Args& k;
  const T* x;
  const T* weight;
  const T* src_scale;
  const T* dst_scale;
  T* out;
  T* partials;
};

template <class T, int L>
struct LanesOf {
  using type = simd::Vec<T, L>;
};
template <class T>
struct LanesOf<T, 1> {
  using type = T;
};
template <class T, int L>
using Lanes = typename LanesOf<T, L>::type;

template <int L, class T>
TESSERA_INLINE Lanes<T, L> get(const T* p) {
  if constexpr (L == 1)
    return *p;
  else
    return simd::load<L>(p);
}

template <int L, class T>
TESSERA_INLINE void put(T* p, Lanes<T, L> v) {
  if constexpr (L == 1)
    *p = v;
  else
    simd::store<L>(p, v);
}

/// Adds one edge's row to the tile. Vector v begins at column v * L, the last at `last`.
template <class T, int L, int V, bool kWeighted>
TESSERA_INLINE void add_edge(Lanes<T, L>* sum, const T* row, int64_t last, T factor) {
#pragma GCC unroll 32
  for (int v = 0; v < V; ++v) {
    const Lanes<T, L> value = get<L>(row + (v == V - 1 ? last : v * L));
    if constexpr (kWeighted)
      sum[v] += value * factor;
    else
      sum[v] += value;
  }
}

template <class T, int L, int V>
TESSERA_INLINE void prefetch(const T* row, int64_t last) {
  constexpr int kLines = (V * L * int(sizeof(T)) + 63) / 64;
#pragma GCC unroll 32
  for (int i = 0; i < kLines; ++i) __builtin_prefetch(reinterpret_cast<const char*>(row) + 64 * i);
  if (last % (64 / int(sizeof(T))) != 0) __builtin_prefetch(row + last + L - 1);
}

/// out[tile] = scale * sum over n edges. `ahead` are the columns to prefetch.
template <class T, int L, int V, bool kWeighted, bool kPrefetch>
TESSERA_INLINE void sum_row(const T* x, int64_t width, int64_t last, const int32_t* col, const int32_t* ahead,
                            const T* factors, int64_t n, T scale, T* out) {
  constexpr int U = V == 1 ? 4 : V <= 3 ? 2 : 1;  // accumulators per vector
  Lanes<T, L> sum[U][V];
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u)
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) sum[u][v] = Lanes<T, L>{};
  const auto edge = [&](int u, int64_t k) __attribute__((always_inline)) {
    if constexpr (kPrefetch) prefetch<T, L, V>(x + ahead[k] * width, last);
    add_edge<T, L, V, kWeighted>(sum[u], x + col[k] * width, last, kWeighted ? factors[k] : T(1));
  };
  int64_t k = 0;
  for (; k + U <= n; k += U)
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) edge(u, k + u);
#pragma GCC unroll 4
  for (int u = 0; u < U - 1; ++u)
    if (k + u < n) edge(u, k + u);
#pragma GCC unroll 32
  for (int v = 0; v < V; ++v) {
    if constexpr (U == 4) sum[0][v] = (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
    if constexpr (U == 2) sum[0][v] += sum[1][v];
    put<L>(out + (v == V - 1 ? last : v * L), sum[0][v] * scale);
  }
}

template <class T>
TESSERA_INLINE T row_scale(const View<T>& a, int64_t row) {
  const int64_t n = a.k.rowptr[row + 1] - a.k.rowptr[row];
  if (n == 0) return T(1);
  const T scale = a.dst_scale != nullptr ? a.dst_scale[row] : T(1);
  return a.k.mean ? scale / T(n) : scale;
}

/// Columns [offset, offset + last + L) of the chunk's rows.
template <class T, int L, int V, bool kWeighted, bool kPrefetch>
void sum_chunk(const View<T>& a, const Chunk& chunk, const T* factors, int64_t offset, int64_t last) {
  const int64_t width = a.k.width;
  const T* x = a.x + offset;
  const auto row = [&](int64_t begin, int64_t end, T scale, T * out) __attribute__((always_inline)) {
    // The last rows of the graph prefetch what they are about to read.
    const int32_t* col = a.k.col + begin;
    const int32_t* ahead = end + kAhead <= a.k.num_edges ? col + kAhead : col;
    sum_row<T, L, V, kWeighted, kPrefetch>(x, width, last, col, ahead, factors + (begin - chunk.edge_begin), end - begin,
                                           scale, out + offset);
  };
  if (chunk.slot >= 0) {
    row(chunk.edge_begin, chunk.edge_end, T(1), a.partials + chunk.slot * width);
    return;
  }
  for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d)
    row(a.k.rowptr[d], a.k.rowptr[d + 1], row_scale(a, d), a.out + d * width);
}

template <class T>
using ChunkFunction = void (*)(const View<T>&, const Chunk&, const T*, int64_t, int64_t);

/// The function for tiles of `vectors` vectors, 1 to V.
template <class T, int L, int V, bool kWeighted, bool kPrefetch>
ChunkFunction<T> tile_function(int64_t vectors) {
  if constexpr (V > 1)
    if (vectors < V) return tile_function<T, L, V - 1, kWeighted, kPrefetch>(vectors);
  return sum_chunk<T, L, V, kWeighted, kPrefetch>;
}

template <class T, int L, int V>
ChunkFunction<T> tile_function(int64_t vectors, bool weighted, bool prefetched) {
  if (weighted)
    return prefetched ? tile_function<T, L, V, true, true>(vectors) : tile_function<T, L, V, true, false>(vectors);
  return prefetched ? tile_function<T, L, V, false, true>(vectors) : tile_function<T, L, V, false, false>(vectors);
}

/// How a row's columns are cut into tiles: `vectors` vectors of `lanes` columns shared out over `tiles` tiles.
template <class T>
struct Tiling {
  int64_t lanes, vectors, tiles;
  ChunkFunction<T> small, large;  // for tiles of vectors / tiles vectors, and of one more
};

template <class T, int L>
Tiling<T> tiling(int64_t width, bool weighted, bool prefetched) {
  if constexpr (L > 1)
    if (width < L) return tiling<T, L / 2>(width, weighted, prefetched);
  constexpr int kMost = L == simd::kLanes<T> ? kMaxVectors : L > 1 ? 2 : 1;
  const int64_t vectors = (width + L - 1) / L, tiles = (vectors + kMost - 1) / kMost, least = vectors / tiles;
  return {L, vectors, tiles, tile_function<T, L, kMost>(least, weighted, prefetched),
          tile_function<T, L, kMost>(least + 1 < kMost ? least + 1 : kMost, weighted, prefetched)};
}

/// The factors of a chunk's edges: where they are already, or gathered into `buffer`.
template <class T>
const T* edge_factors(const View<T>& a, const Chunk& chunk, T* buffer) {
  const int64_t begin = chunk.edge_begin, n = chunk.edge_end - begin;
  const int32_t* col = a.k.col + begin;
  const T* weight = a.weight;
  const T* src_scale = a.src_scale;
  if (weight == nullptr) {
    for (int64_t i = 0; i < n; ++i) buffer[i] = src_scale[col[i]];
    return buffer;
  }
  if (const int64_t* edge_id = a.k.edge_id; edge_id != nullptr) {
    edge_id += begin;
    for (int64_t i = 0; i < n; ++i) buffer[i] = weight[edge_id[i]];
    weight = buffer;
  } else {
    weight += begin;
  }
  if (src_scale == nullptr) return weight;
  for (int64_t i = 0; i < n; ++i) buffer[i] = weight[i] * src_scale[col[i]];
  return buffer;
}

template <class T>
void spmm(const SpmmKernel::Args& k) {
  const View<T> a{k,
                  static_cast<const T*>(k.x),
                  static_cast<const T*>(k.weight),
                  static_cast<const T*>(k.src_scale),
                  static_cast<const T*>(k.dst_scale),
                  static_cast<T*>(k.out),
                  static_cast<T*>(k.partials)};
  if (k.width == 0) return;
  const bool weighted = k.weight != nullptr || k.src_scale != nullptr;
  const Tiling<T> t = tiling<T, simd::kLanes<T>>(k.width, weighted, k.x_rows * k.width * int64_t(sizeof(T)) > kCachedBytes);
  const int64_t larger = t.vectors % t.tiles;
  const int64_t grain = kForkElements / (kChunkCost * (k.width + kRowCost)) + 1;
  parallel_for(k.num_chunks, grain, [&](int64_t first, int64_t last) {
    T buffer[kHubEdges];
    for (int64_t c = first; c < last; ++c) {
      const Chunk& chunk = k.chunks[c];
      const T* factors = weighted ? edge_factors(a, chunk, buffer) : buffer;
      int64_t vector = 0;
      for (int64_t i = 0; i < t.tiles; ++i) {
        const int64_t vectors = t.vectors / t.tiles + (i < larger ? 1 : 0), offset = vector * t.lanes;
        vector += vectors;
        const int64_t tail = (vector == t.vectors ? k.width : vector * t.lanes) - t.lanes - offset;
        (i < larger ? t.large : t.small)(a, chunk, factors, offset, tail);
      }
    }
  });
  parallel_for(k.num_hubs, 16, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) {
      const Hub& hub = k.hubs[h];
      T* out = a.out + hub.row * k.width;
      const T scale = row_scale(a, hub.row);
      const T* partial = a.partials + hub.slot_begin * k.width;
      for (int64_t j = 0; j < k.width; ++j) out[j] = partial[j];
      for (int64_t s = hub.slot_begin + 1; s < hub.slot_end; ++s) {
        partial += k.width;
        for (int64_t j = 0; j < k.width; ++j) out[j] += partial[j];
      }
      for (int64_t j = 0; j < k.width; ++j) out[j] *= scale;
    }
  });
}

}  // namespace

template <Isa>
void SpmmKernel::cpu(const Args& args) {
  args.is_double ? spmm<double>(args) : spmm<float>(args);
}
template void SpmmKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
