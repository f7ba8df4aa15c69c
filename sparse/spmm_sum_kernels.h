#pragma once

#include "tessera/core/parallel.h"
#include "tessera/sparse/spmm_tile_kernels.h"

/// The sum over a row's edges, for sparse/spmm_cpu.cpp, which says how it goes, and for its forms in spmm_half_cpu.cpp and
/// spmm_heads_cpu.cpp.
namespace tessera {
namespace {

/// What multiplies an edge's row.
enum Factor { kOne, kPerEdge, kPerSource, kPerHead };

/// `Fetch`, known when compiling, or looked up for each row: a branch an edge, for the forms that are used less, which
/// would otherwise take most of the compile time.
enum FetchForm { kFetchNone, kFetchNear, kFetchFar, kFetchAny };
static_assert(kFetchNone == int(Fetch::none) && kFetchNear == int(Fetch::near) && kFetchFar == int(Fetch::far));

constexpr int64_t kStreamBytes = int64_t{16} << 20;  // a result beyond this size bypasses the caches

template <class T>
struct SumView : SpmmView<T> {
  Fetch fetch;
  bool streamed;  // the result bypasses the caches
};

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

/// C columns of a row of T, in registers, in the type that they are added in.
template <class T, int C>
struct Block {
  using A = simd::Compute<T>;
  using V = Lanes<A, C>;
  static constexpr int kRegisters = 1;
  V v = V{};
  TESSERA_INLINE static Block load(const T* p) { return {get<C>(p)}; }
  TESSERA_INLINE void add(const Block& b) { v += b.v; }
  TESSERA_INLINE void add(const Block& b, A factor) { v = multiply_add(b.v, factor, v); }
  TESSERA_INLINE void scale(A factor) { v *= factor; }
  TESSERA_INLINE void add_bias(const A* bias) { v += get<C>(bias); }
  TESSERA_INLINE void relu() { v = v < V{} ? V{} : v; }  // keeps NaN
  TESSERA_INLINE void store_partial(A* p) const { put<C>(p, v); }
  TESSERA_INLINE void store(T* p) const { put<C>(p, v); }
  TESSERA_INLINE void store_streamed(T* p) const {
    if constexpr (sizeof(T) == sizeof(A))
      stream<C>(p, v);
    else
      store(p);
  }
};

/// The even and the odd, or the first and the second half, of 2 L floats in two vectors.
template <int L, class F>
TESSERA_INLINE void deal(F first, F second, F* even, F* odd) {
  if constexpr (L == 4) {
    *even = __builtin_shufflevector(first, second, 0, 2, 4, 6);
    *odd = __builtin_shufflevector(first, second, 1, 3, 5, 7);
  } else if constexpr (L == 8) {
    *even = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14);
    *odd = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15);
  } else {
    *even = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *odd = __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  }
}
template <int L, class F>
TESSERA_INLINE void undeal(F even, F odd, F* first, F* second) {
  if constexpr (L == 4) {
    *first = __builtin_shufflevector(even, odd, 0, 4, 1, 5);
    *second = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
  } else if constexpr (L == 8) {
    *first = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
    *second = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
  } else {
    *first = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    *second = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}

/// Twice as many 16-bit columns as a register has floats, in two. Those of bf16 are split into even and odd ones: a shift
/// and a mask for both, where converting each half would take two instructions and a load each.
template <class T>
requires(sizeof(T) == 2) struct Block<T, 2 * simd::kLanes<float>> {
  using A = float;
  static constexpr int L = simd::kLanes<float>;
  static constexpr bool kDealt = __is_same(T, bf16);
  static constexpr int kRegisters = 2;
  using V = simd::Vec<float, L>;
  using Bits = simd::Vec<uint32_t, L>;
  V a = V{}, b = V{};

  TESSERA_INLINE static Block load(const T* p) {
    if constexpr (kDealt) {
      const Bits both = (Bits)simd::load<2 * L>(reinterpret_cast<const uint16_t*>(p));
      return {(V)(both << 16), (V)(both & 0xffff0000u)};
    } else {
      return {simd::load_compute<L>(p), simd::load_compute<L>(p + L)};
    }
  }
  TESSERA_INLINE void add(const Block& o) {
    a += o.a;
    b += o.b;
  }
  TESSERA_INLINE void add(const Block& o, float factor) {
    a += o.a * factor;
    b += o.b * factor;
  }
  TESSERA_INLINE void scale(float factor) {
    a *= factor;
    b *= factor;
  }
  TESSERA_INLINE void add_bias(const float* bias) {
    V first = simd::load<L>(bias), second = simd::load<L>(bias + L);
    if constexpr (kDealt) deal<L>(V(first), V(second), &first, &second);
    a += first;
    b += second;
  }
  TESSERA_INLINE void relu() {
    a = a < V{} ? V{} : a;
    b = b < V{} ? V{} : b;
  }
  TESSERA_INLINE void store_partial(float* p) const {
    V first = a, second = b;
    if constexpr (kDealt) undeal<L>(a, b, &first, &second);
    simd::store<L>(p, first);
    simd::store<L>(p + L, second);
  }
  /// In the upper half, rounded as bf16's own conversion.
  TESSERA_INLINE static Bits rounded(V v) {
    const Bits bits = (Bits)v, next = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (bits & 0x7fffffffu) > 0x7f800000u ? (bits | 0x400000u) : next;
  }
  TESSERA_INLINE void store(T* p) const {
    if constexpr (kDealt) {
      const Bits both = (rounded(a) >> 16) | (rounded(b) & 0xffff0000u);
      simd::store<2 * L>(reinterpret_cast<uint16_t*>(p), (simd::Vec<uint16_t, 2 * L>)both);
    } else {
      simd::store_compute<L>(p, a);
      simd::store_compute<L>(p + L, b);
    }
  }
  TESSERA_INLINE void store_streamed(T* p) const { store(p); }
};

/// Columns [offset, offset + last + C) of the chunk's rows. Block v begins at column v * C of the tile, the last at `last`.
template <class T, int C, int V, Factor kFactor, FetchForm kFetch>
void sum_chunk(const SumView<T>& a, const Chunk& chunk, const simd::Compute<T>* factors, int64_t offset, int64_t last) {
  using A = simd::Compute<T>;
  using B = Block<T, C>;
  constexpr int kHeld = V * B::kRegisters;
  constexpr int U = kHeld == 1 ? 4 : kHeld <= 3 ? 2 : 1;  // accumulators per block
  const Fetch fetch = kFetch == kFetchAny ? a.fetch : Fetch(kFetch);
  const int64_t width = a.k.width, distance = fetch_distance(fetch, kLines<T, C, V>);
  const bool piece = chunk.slot >= 0;
  const T* x = a.x + offset;
  const auto at = [last](int v) __attribute__((always_inline)) { return v == V - 1 ? last : v * C; };
  int64_t head[V];
  if constexpr (kFactor == kPerHead)
    for (int v = 0; v < V; ++v) head[v] = (offset + at(v)) / (width / a.k.heads);
  // The usual case has a branch of its own: a block for each head, and nothing but weights.
  const bool one_each = kFactor == kPerHead && width == a.k.heads * C && a.src_scale == nullptr;
  for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d) {
    const int64_t begin = piece ? chunk.edge_begin : a.k.rowptr[d];
    const int64_t n = (piece ? chunk.edge_end : a.k.rowptr[d + 1]) - begin;
    const int32_t* col = a.k.col + begin;
    // The last rows of the graph prefetch what they are about to read.
    const int64_t skip = begin + n + distance <= a.k.num_edges ? distance : 0;
    const int32_t* ahead = col + skip;
    const A* factor = kFactor == kPerEdge ? factors + (begin - chunk.edge_begin) : factors;
    const int64_t* edge_id = a.k.edge_id != nullptr ? a.k.edge_id + begin : nullptr;
    B sum[U][V];
    const auto step = [&](int u, int64_t k) __attribute__((always_inline)) {
      if (fetch == Fetch::near) prefetch_tile<T, C, V, 3>(x + ahead[k] * width, last);
      if (fetch == Fetch::far) prefetch_tile<T, C, V, 2>(x + ahead[k] * width, last);
      const T* row = x + col[k] * width;
      if constexpr (kFactor == kPerHead) {
        if (edge_id != nullptr) __builtin_prefetch(a.weight + edge_id[k + skip] * a.k.heads + head[0], 0, 3);
        const A* weight = a.weight + (edge_id != nullptr ? edge_id[k] : begin + k) * a.k.heads;
        if (one_each) {
#pragma GCC unroll 16
          for (int v = 0; v < V; ++v) sum[u][v].add(B::load(row + at(v)), weight[head[0] + v]);
        } else {
          const A scale = a.src_scale != nullptr ? a.src_scale[col[k]] : A(1);
#pragma GCC unroll 16
          for (int v = 0; v < V; ++v) sum[u][v].add(B::load(row + at(v)), weight[head[v]] * scale);
        }
      } else {
        const A f = kFactor == kOne ? A(1) : factor[kFactor == kPerEdge ? k : col[k]];
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) {
          if constexpr (kFactor == kOne)
            sum[u][v].add(B::load(row + at(v)));
          else
            sum[u][v].add(B::load(row + at(v)), f);
        }
      }
    };
    int64_t k = 0;
    for (; k + U <= n; k += U)
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) step(u, k + u);
#pragma GCC unroll 4
    for (int u = 0; u < U - 1; ++u)
      if (k + u < n) step(u, k + u);
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      if constexpr (U == 4) {
        sum[0][v].add(sum[1][v]);
        sum[2][v].add(sum[3][v]);
        sum[0][v].add(sum[2][v]);
      }
      if constexpr (U == 2) sum[0][v].add(sum[1][v]);
    }
    if (piece) {
      A* to = a.partials + chunk.slot * width + offset;
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[0][v].store_partial(to + at(v));
      continue;
    }
    const A scale = row_scale(a, d);
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[0][v].scale(scale);
    if (a.bias != nullptr)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[0][v].add_bias(a.bias + offset + at(v));
    if (a.k.relu)
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[0][v].relu();
    T* out = a.out + d * width + offset;
    if (a.streamed) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[0][v].store_streamed(out + at(v));
    } else {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) sum[0][v].store(out + at(v));
    }
  }
}

template <class T>
using SumChunk = void (*)(const SumView<T>&, const Chunk&, const simd::Compute<T>*, int64_t, int64_t);

/// The function for tiles of `blocks` blocks, 1 to V.
template <class T, int C, int V, Factor kFactor, FetchForm kFetch>
SumChunk<T> sum_function(int64_t blocks) {
  if constexpr (V > 1)
    if (blocks < V) return sum_function<T, C, V - 1, kFactor, kFetch>(blocks);
  return sum_chunk<T, C, V, kFactor, kFetch>;
}

/// How columns are cut into tiles: `blocks` blocks of C columns shared out over `tiles` tiles.
template <class T>
struct Tiling {
  int64_t columns, blocks, tiles;
  SumChunk<T> small, large;  // for tiles of blocks / tiles blocks, and of one more
};

/// For `width` columns at least C, in tiles of at most kMost blocks. `function(blocks)` is the function of a tile.
template <class T, int C, int kMost, class F>
Tiling<T> tiling_of(int64_t width, const F& function) {
  const int64_t blocks = (width + C - 1) / C, tiles = (blocks + kMost - 1) / kMost, least = blocks / tiles;
  return {C, blocks, tiles, function(least), function(least + 1 < kMost ? least + 1 : kMost)};
}

/// Columns [begin, begin + width) of the chunk's rows.
template <class T>
TESSERA_INLINE void run_tiles(const SumView<T>& a, const Tiling<T>& t, const Chunk& chunk, const simd::Compute<T>* factors,
                              int64_t begin, int64_t width) {
  const int64_t larger = t.blocks % t.tiles;
  int64_t block = 0;
  for (int64_t i = 0; i < t.tiles; ++i) {
    const int64_t offset = block * t.columns;
    block += t.blocks / t.tiles + (i < larger ? 1 : 0);
    const int64_t end = block == t.blocks ? width : block * t.columns;
    (i < larger ? t.large : t.small)(a, chunk, factors, begin + offset, end - t.columns - offset);
  }
}

/// A hub's result from its pieces, in their order.
template <class T>
void join_sums(const SumView<T>& a, const Hub& hub) {
  using A = simd::Compute<T>;
  const int64_t width = a.k.width;
  A* sum = a.partials + hub.slot_begin * width;
  for (int64_t s = hub.slot_begin + 1; s < hub.slot_end; ++s) {
    const A* next = a.partials + s * width;
    for (int64_t j = 0; j < width; ++j) sum[j] += next[j];
  }
  const A scale = row_scale(a, hub.row);
  for (int64_t j = 0; j < width; ++j) put<1>(a.out + hub.row * width + j, with_epilogue<1>(a, A(sum[j] * scale), j));
}

/// Streamed stores are not ordered with the stores that tell another thread that the work is done.
TESSERA_INLINE void stream_end() {
#if defined(__SSE2__)
  asm volatile("sfence" : : : "memory");
#endif
}

/// All chunks by `chunk(view, chunk, buffer of kHubEdges factors)`, then the hubs.
template <class T, class F>
void sum_rows(const SpmmArgs& k, const F& sum_of) {
  const int64_t row_bytes = k.width * int64_t(sizeof(T));
  const SumView<T> a{SpmmView<T>(k), fetch_of(k.x_rows * row_bytes),
                     sizeof(T) > 2 && k.rows * row_bytes > kStreamBytes && row_bytes % 64 == 0 &&
                         reinterpret_cast<uintptr_t>(k.out) % 64 == 0};
  parallel_for(k.num_chunks, chunk_grain(k.width), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) sum_of(a, k.chunks[c]);
    if (a.streamed) stream_end();
  });
  parallel_for(k.num_hubs, 16, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) join_sums(a, k.hubs[h]);
  });
}

}  // namespace
}  // namespace tessera
