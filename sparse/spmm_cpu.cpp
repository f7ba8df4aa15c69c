// Sparse times dense with a sum or a mean, on CPUs.
//
// The time is the time of fetching x's rows, so everything serves that: a tile of the result row (up to 8 vectors with 16
// registers, 16 with 32) stays in registers while the row's edges are walked, and is written once; columns are int32; an
// unweighted graph reads no factors; rows some edges ahead are prefetched (sparse/schedule.h); a large result bypasses the
// caches. Edge weights are gathered by edge id, for a chunk at a time, into a small buffer where their cache
// misses overlap, so the inner loop has three forms only: no factor, one per edge, one per source.
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

constexpr int kMaxVectors = simd::kRegisters / 2;  // of a tile
/// What multiplies an edge's row.
enum Factor { kOne, kPerEdge, kPerSource };

constexpr int64_t kStreamBytes = int64_t{16} << 20;  // a result beyond this size bypasses the caches
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
  bool streamed;  // the result bypasses the caches
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

/// value * factor + sum, rounded once where the instruction set can. Vectors are contracted by the compiler; single lanes
/// it may put together in vectors and then not contract, so that the same sum would get other bits in another kernel.
template <class V, class T>
TESSERA_INLINE V multiply_add(V value, T factor, V sum) {
#if defined(__FMA__)
  if constexpr (sizeof(V) == sizeof(float) && sizeof(T) == sizeof(float)) return __builtin_fmaf(value, factor, sum);
  if constexpr (sizeof(V) == sizeof(double) && sizeof(T) == sizeof(double)) return __builtin_fma(value, factor, sum);
#endif
  return sum + value * factor;
}

/// Adds one edge's row to the tile. Vector v begins at column v * L, the last at `last`.
template <class T, int L, int V, Factor kFactor>
TESSERA_INLINE void add_edge(Lanes<T, L>* sum, const T* row, int64_t last, T factor) {
#pragma GCC unroll 32
  for (int v = 0; v < V; ++v) {
    const Lanes<T, L> value = get<L>(row + (v == V - 1 ? last : v * L));
    if constexpr (kFactor == kOne)
      sum[v] += value;
    else
      sum[v] = multiply_add(value, factor, sum[v]);
  }
}

template <Factor kFactor, class T>
TESSERA_INLINE T factor_of(const T* factors, const int32_t* col, int64_t k) {
  return kFactor == kOne ? T(1) : factors[kFactor == kPerEdge ? k : col[k]];
}

template <class T, int L, int V>
constexpr int kLines = (V * L * int(sizeof(T)) + 63) / 64;  // of a row's tile

template <class T, int L, int V, Fetch kFetch>
TESSERA_INLINE void prefetch(const T* row, int64_t last) {
  constexpr int kLevel = kFetch == Fetch::near ? 3 : 2;  // prefetcht0, prefetcht1
#pragma GCC unroll 32
  for (int i = 0; i < kLines<T, L, V>; ++i) __builtin_prefetch(reinterpret_cast<const char*>(row) + 64 * i, 0, kLevel);
  if (last % (64 / int(sizeof(T))) != 0) __builtin_prefetch(row + last + L - 1, 0, kLevel);
}

/// A store that does not read the line first nor keep it; p is aligned to the vector.
template <int L, class T>
TESSERA_INLINE void stream(T* p, Lanes<T, L> v) {
#if defined(__AVX__)
  if constexpr (L * sizeof(T) >= 16) {
    asm volatile("vmovntps %1, %0" : "=m"(*reinterpret_cast<typename simd::VecOf<T, L>::unaligned*>(p)) : "v"(v));
    return;
  }
#elif defined(__SSE2__)
  if constexpr (L * sizeof(T) == 16) {
    asm volatile("movntps %1, %0" : "=m"(*reinterpret_cast<typename simd::VecOf<T, L>::unaligned*>(p)) : "x"(v));
    return;
  }
#endif
  put<L>(p, v);
}

/// Streamed stores are not ordered with the stores that tell another thread that the work is done.
TESSERA_INLINE void stream_end() {
#if defined(__SSE2__)
  asm volatile("sfence" : : : "memory");
#endif
}

/// out[tile] = scale * sum over n edges. `ahead` are the columns to prefetch.
template <class T, int L, int V, Factor kFactor, Fetch kFetch>
TESSERA_INLINE void sum_row(const T* x, int64_t width, int64_t last, const int32_t* col, const int32_t* ahead,
                            const T* factors, int64_t n, T scale, T* out, bool streamed) {
  constexpr int U = V == 1 ? 4 : V <= 3 ? 2 : 1;  // accumulators per vector
  Lanes<T, L> sum[U][V];
#pragma GCC unroll 4
  for (int u = 0; u < U; ++u)
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) sum[u][v] = Lanes<T, L>{};
  int64_t k = 0;
  for (; k + U <= n; k += U)
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      if constexpr (kFetch != Fetch::none) prefetch<T, L, V, kFetch>(x + ahead[k + u] * width, last);
      add_edge<T, L, V, kFactor>(sum[u], x + col[k + u] * width, last, factor_of<kFactor>(factors, col, k + u));
    }
#pragma GCC unroll 4
  for (int u = 0; u < U - 1; ++u)
    if (k + u < n) {
      if constexpr (kFetch != Fetch::none) prefetch<T, L, V, kFetch>(x + ahead[k + u] * width, last);
      add_edge<T, L, V, kFactor>(sum[u], x + col[k + u] * width, last, factor_of<kFactor>(factors, col, k + u));
    }
#pragma GCC unroll 32
  for (int v = 0; v < V; ++v) {
    if constexpr (U == 4) sum[0][v] = (sum[0][v] + sum[1][v]) + (sum[2][v] + sum[3][v]);
    if constexpr (U == 2) sum[0][v] += sum[1][v];
    sum[0][v] *= scale;
  }
  if (streamed) {
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) stream<L>(out + (v == V - 1 ? last : v * L), sum[0][v]);
  } else {
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) put<L>(out + (v == V - 1 ? last : v * L), sum[0][v]);
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
template <class T, int L, int V, Factor kFactor, Fetch kFetch>
void sum_chunk(const View<T>& a, const Chunk& chunk, const T* factors, int64_t offset, int64_t last) {
  constexpr int64_t kDistance = fetch_distance(kFetch, kLines<T, L, V>);
  const int64_t width = a.k.width;
  const bool piece = chunk.slot >= 0;
  for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d) {
    const int64_t begin = piece ? chunk.edge_begin : a.k.rowptr[d], end = piece ? chunk.edge_end : a.k.rowptr[d + 1];
    const int32_t* col = a.k.col + begin;
    // The last rows of the graph prefetch what they are about to read.
    const int32_t* ahead = end + kDistance <= a.k.num_edges ? col + kDistance : col;
    T* out = piece ? a.partials + chunk.slot * width : a.out + d * width;
    sum_row<T, L, V, kFactor, kFetch>(a.x + offset, width, last, col, ahead,
                                      kFactor == kPerEdge ? factors + (begin - chunk.edge_begin) : factors, end - begin,
                                      piece ? T(1) : row_scale(a, d), out + offset, a.streamed && !piece);
  }
}

template <class T>
using ChunkFunction = void (*)(const View<T>&, const Chunk&, const T*, int64_t, int64_t);

/// The function for tiles of `vectors` vectors, 1 to V.
template <class T, int L, int V, Factor kFactor, Fetch kFetch>
ChunkFunction<T> tile_function(int64_t vectors) {
  if constexpr (V > 1)
    if (vectors < V) return tile_function<T, L, V - 1, kFactor, kFetch>(vectors);
  return sum_chunk<T, L, V, kFactor, kFetch>;
}

template <class T, int L, int V, Factor kFactor>
ChunkFunction<T> tile_function(int64_t vectors, Fetch fetch) {
  switch (fetch) {
    case Fetch::none: return tile_function<T, L, V, kFactor, Fetch::none>(vectors);
    case Fetch::near: return tile_function<T, L, V, kFactor, Fetch::near>(vectors);
    case Fetch::far: break;
  }
  return tile_function<T, L, V, kFactor, Fetch::far>(vectors);
}

template <class T, int L, int V>
ChunkFunction<T> tile_function(int64_t vectors, Factor factor, Fetch fetch) {
  switch (factor) {
    case kOne: return tile_function<T, L, V, kOne>(vectors, fetch);
    case kPerEdge: return tile_function<T, L, V, kPerEdge>(vectors, fetch);
    case kPerSource: break;
  }
  return tile_function<T, L, V, kPerSource>(vectors, fetch);
}

/// How a row's columns are cut into tiles: `vectors` vectors of `lanes` columns shared out over `tiles` tiles.
template <class T>
struct Tiling {
  int64_t lanes, vectors, tiles;
  ChunkFunction<T> small, large;  // for tiles of vectors / tiles vectors, and of one more
};

template <class T, int L>
Tiling<T> tiling(int64_t width, Factor factor, Fetch fetch) {
  if constexpr (L > 1)
    if (width < L) return tiling<T, L / 2>(width, factor, fetch);
  constexpr int kMost = L == simd::kLanes<T> ? kMaxVectors : L > 1 ? 2 : 1;
  const int64_t vectors = (width + L - 1) / L, tiles = (vectors + kMost - 1) / kMost, least = vectors / tiles;
  return {L, vectors, tiles, tile_function<T, L, kMost>(least, factor, fetch),
          tile_function<T, L, kMost>(least + 1 < kMost ? least + 1 : kMost, factor, fetch)};
}

/// The factors of a weighted chunk's edges: where they are already, or gathered into `buffer`.
template <class T>
const T* edge_factors(const View<T>& a, const Chunk& chunk, T* buffer) {
  const int64_t begin = chunk.edge_begin, n = chunk.edge_end - begin;
  const T* weight = a.weight + begin;
  if (a.k.edge_id != nullptr) {
    const int64_t* edge_id = a.k.edge_id + begin;
    for (int64_t i = 0; i < n; ++i) buffer[i] = a.weight[edge_id[i]];
    weight = buffer;
  }
  if (a.src_scale == nullptr) return weight;
  for (int64_t i = 0; i < n; ++i) buffer[i] = weight[i] * a.src_scale[a.k.col[begin + i]];
  return buffer;
}

template <class T>
void spmm(const SpmmKernel::Args& k) {
  if (k.width == 0) return;
  const int64_t row_bytes = k.width * int64_t(sizeof(T)), x_bytes = k.x_rows * row_bytes;
  const View<T> a{
      .k = k,
      .x = static_cast<const T*>(k.x),
      .weight = static_cast<const T*>(k.weight),
      .src_scale = static_cast<const T*>(k.src_scale),
      .dst_scale = static_cast<const T*>(k.dst_scale),
      .out = static_cast<T*>(k.out),
      .partials = static_cast<T*>(k.partials),
      .streamed = k.rows * row_bytes > kStreamBytes && row_bytes % 64 == 0 && reinterpret_cast<uintptr_t>(k.out) % 64 == 0};
  const Factor factor = k.weight != nullptr ? kPerEdge : k.src_scale != nullptr ? kPerSource : kOne;
  const Fetch fetch = fetch_of(x_bytes);
  const Tiling<T> t = tiling<T, simd::kLanes<T>>(k.width, factor, fetch);
  const int64_t larger = t.vectors % t.tiles;
  const int64_t grain = kForkElements / (kChunkCost * (k.width + kRowCost)) + 1;
  parallel_for(k.num_chunks, grain, [&](int64_t first, int64_t last) {
    T buffer[kHubEdges];
    for (int64_t c = first; c < last; ++c) {
      const Chunk& chunk = k.chunks[c];
      const T* factors = factor == kPerEdge ? edge_factors(a, chunk, buffer) : a.src_scale;
      int64_t vector = 0;
      for (int64_t i = 0; i < t.tiles; ++i) {
        const int64_t vectors = t.vectors / t.tiles + (i < larger ? 1 : 0), offset = vector * t.lanes;
        vector += vectors;
        const int64_t tail = (vector == t.vectors ? k.width : vector * t.lanes) - t.lanes - offset;
        (i < larger ? t.large : t.small)(a, chunk, factors, offset, tail);
      }
    }
    if (a.streamed) stream_end();
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
