// Reductions of rows by segment, on CPUs.
//
// The time is the time of fetching x's rows: each is read once, in the plan's order. A tile of the result row (up to 8
// vectors) stays in registers while the segment's rows are walked and is written once, finished: divided, combined with an
// initial content, rounded to 16 bits. Rows some places ahead are prefetched when an order makes the walk jump about, into
// the second-level cache, which can wait for more lines at a time than the first (Zen 4: 1.5 times the rows per second);
// rows in their own order are left to the hardware.
// Widths that are no multiple of the vector overlap the last two vectors of a row instead of masking. Narrow rows use
// narrower vectors and several accumulators, since a sum would otherwise wait for one addition per row.
// The largest and the least are one loop, on x and on -x, which are exact. It keeps the place of the best beside it: a row
// takes over when it is not at most the best and the best is no NaN, so the first of equals and the first NaN stay.
// Work comes in chunks of about equal rows; a hub's pieces are reduced on their own and combined in order at the end. The
// order of a sum depends on the width and the instruction set only.

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/lanes_kernels.h"
#include "tessera/scatter/segment_reduce_kernels.h"

namespace tessera {
namespace {

/// How rows follow each other: by the plan's order, in sequence, or whichever it is. The last, a branch a row, is for the
/// less usual types and operations, which would otherwise take most of this file's compile time.
enum class Walk : uint8_t { order, sequence, either };

constexpr int kMaxVectors = 8;                       // of a tile
constexpr int64_t kAhead = 48;                       // rows between a prefetch and its use
constexpr int64_t kForkElements = int64_t{1} << 18;  // rows x width below which a second thread costs more than it brings

using Args = SegmentReduceKernel::Args;

/// The arrays with their types.
template <class T>
struct View {
  using A = simd::Compute<T>;
  const Args& k;
  const T* x;
  const A* center;
  const T* initial;
  T* out;
  A* partials;
  const T* initial_at(int64_t i) const { return initial != nullptr ? initial + i : nullptr; }
  int32_t* winner_at(int64_t i) const { return k.winner != nullptr ? k.winner + i : nullptr; }
};

/// A tile of V vectors of L lanes; vector v begins at column v * L of the tile, the last at `last`.
template <class T, int L, int V>
struct Tile {
  using A = simd::Compute<T>;
  using Values = Lanes<A, L>;
  using Places = Lanes<Place<A>, L>;
  TESSERA_INLINE static int64_t at(int v, int64_t last) { return v == V - 1 ? last : v * L; }
  TESSERA_INLINE static void prefetch(const T* row, int64_t last) {
    constexpr int kLines = (V * L * int(sizeof(T)) + 63) / 64;
#pragma GCC unroll 16
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(reinterpret_cast<const char*>(row) + 64 * i, 0, 2);
    if (last % (64 / int(sizeof(T))) != 0) __builtin_prefetch(row + last + L - 1, 0, 2);
  }
};

/// The value of a non-empty segment's tile from its reduction: divided, combined with the initial content. For `best` a
/// place of -1 says that the initial content won.
template <SegmentOp kOp, class T, int L>
TESSERA_INLINE void finish(const Args& k, int64_t n, const T* initial, T* out, int32_t* winner,
                           Lanes<simd::Compute<T>, L> value, Lanes<Place<simd::Compute<T>>, L> place) {
  using A = simd::Compute<T>;
  const bool include = k.content == Initial::include;
  if constexpr (kOp == SegmentOp::best) {
    const A sign = k.smallest ? A(-1) : A(1);
    if (include) {
      const auto first = get<L>(initial) * sign;
      const auto wins = beats(value, first);
      value = wins ? value : first;
      place = wins ? place : same_place<L, Place<A>>(-1);
    }
    value = value * sign;
    if (winner != nullptr) put_places<L, Place<A>>(winner, place);
  } else if constexpr (kOp == SegmentOp::mul) {
    if (include) value = value * get<L>(initial);
  } else {
    if (include) value = value + get<L>(initial);
    if (k.divide) {
      const int64_t by = n + (include ? 1 : 0) - k.less;
      value = value / A(by < 1 ? 1 : by);
    }
  }
  put<L>(out, value);
}

/// An empty segment's tile.
template <SegmentOp kOp, class T, int L>
TESSERA_INLINE void finish_empty(const Args& k, const T* initial, T* out, int32_t* winner) {
  using A = simd::Compute<T>;
  Lanes<A, L> value = Lanes<A, L>{};
  if (k.content != Initial::none)
    value = get<L>(initial);
  else if constexpr (kOp == SegmentOp::mul)
    value = value + A(1);
  put<L>(out, value);
  if constexpr (kOp == SegmentOp::best)
    if (winner != nullptr) put_places<L, Place<A>>(winner, same_place<L, Place<A>>(-1));
}

/// Reduces n > 0 rows to value[] and place[] (from `place0` on). `order` and `ahead` as in the plan; without an order the
/// rows follow each other from x.
template <SegmentOp kOp, Walk kWalk, class T, int L, int V>
TESSERA_INLINE void reduce_rows(const T* x, int64_t width, int64_t last, const int64_t* order, const int64_t* ahead,
                                int64_t n, simd::Compute<T> sign, const Lanes<simd::Compute<T>, L>* center, int64_t place0,
                                Lanes<simd::Compute<T>, L>* value, Lanes<Place<simd::Compute<T>>, L>* place) {
  using A = simd::Compute<T>;
  using M = Tile<T, L, V>;
  using Values = typename M::Values;
  constexpr int U = kOp == SegmentOp::best ? 1 : V == 1 ? 4 : V == 2 ? 2 : 1;  // accumulators per vector
  const auto row_of = [&](int64_t k) __attribute__((always_inline)) {
    if constexpr (kWalk == Walk::either) {
      const int64_t at = order != nullptr ? order[k] : k;
      if (order != nullptr) M::prefetch(x + ahead[k] * width, last);
      return x + at * width;
    } else if constexpr (kWalk == Walk::order) {
      M::prefetch(x + ahead[k] * width, last);
      return x + order[k] * width;
    } else {
      return x + k * width;
    }
  };
  if constexpr (kOp == SegmentOp::best) {
    const T* first = row_of(0);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      value[v] = get<L>(first + M::at(v, last)) * sign;
      place[v] = same_place<L, Place<A>>(place0);
    }
    for (int64_t k = 1; k < n; ++k) {
      const T* row = row_of(k);
      const auto here = same_place<L, Place<A>>(place0 + k);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        take<Values>(get<L>(row + M::at(v, last)) * sign, here, value[v], place[v]);
      }
    }
  } else {
    Values sum[U][V];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sum[u][v] = Values{} + (kOp == SegmentOp::mul ? A(1) : A(0));
    const auto step = [&](int u, int64_t k) __attribute__((always_inline)) {
      const T* row = row_of(k);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const Values next = get<L>(row + M::at(v, last));
        if constexpr (kOp == SegmentOp::sum) sum[u][v] += next;
        if constexpr (kOp == SegmentOp::mul) sum[u][v] *= next;
        if constexpr (kOp == SegmentOp::square) {
          const Values d = next - center[v];
          sum[u][v] += d * d;
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
    const auto joined = [](Values a, Values b) __attribute__((always_inline)) {
      if constexpr (kOp == SegmentOp::mul)
        return Values(a * b);
      else
        return Values(a + b);
    };
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      if constexpr (U == 4) sum[0][v] = joined(joined(sum[0][v], sum[1][v]), joined(sum[2][v], sum[3][v]));
      if constexpr (U == 2) sum[0][v] = joined(sum[0][v], sum[1][v]);
      value[v] = sum[0][v];
      place[v] = typename M::Places{};
    }
  }
}

/// Columns [offset, offset + last + L) of the chunk's segments.
template <SegmentOp kOp, Walk kWalk, class T, int L, int V>
void reduce_chunk(const View<T>& a, const SegmentChunk& chunk, int64_t offset, int64_t last) {
  using A = simd::Compute<T>;
  using M = Tile<T, L, V>;
  const int64_t width = a.k.width;
  const SegmentView& plan = a.k.plan;
  const A sign = a.k.smallest ? A(-1) : A(1);
  typename M::Values value[V], center[V];
  typename M::Places place[V];
  const auto reduce = [&](int64_t segment, int64_t begin, int64_t end) __attribute__((always_inline)) {
    if constexpr (kOp == SegmentOp::square)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) center[v] = get<L>(a.center + segment * width + offset + M::at(v, last));
    const bool ordered = kWalk == Walk::order || (kWalk == Walk::either && plan.order != nullptr);
    const int64_t* order = ordered ? plan.order + begin : nullptr;
    // The last rows prefetch what they are about to read.
    const int64_t* ahead = ordered && end + kAhead <= plan.num_rows ? order + kAhead : order;
    const T* x = a.x + offset + (ordered ? 0 : begin * width);
    reduce_rows<kOp, kWalk, T, L, V>(x, width, last, order, ahead, end - begin, sign, center, begin - plan.offsets[segment],
                                     value, place);
  };
  if (chunk.slot >= 0) {
    reduce(chunk.segment_begin, chunk.begin, chunk.end);
    const int64_t to = chunk.slot * width + offset;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      put<L>(a.partials + to + M::at(v, last), value[v]);
      if constexpr (kOp == SegmentOp::best) put_places<L, Place<A>>(a.k.partial_winners + to + M::at(v, last), place[v]);
    }
    return;
  }
  for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s) {
    const int64_t begin = plan.offsets[s], end = plan.offsets[s + 1], to = s * width + offset;
    if (begin == end) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const int64_t i = to + M::at(v, last);
        finish_empty<kOp, T, L>(a.k, a.initial_at(i), a.out + i, a.winner_at(i));
      }
      continue;
    }
    reduce(s, begin, end);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const int64_t i = to + M::at(v, last);
      finish<kOp, T, L>(a.k, end - begin, a.initial_at(i), a.out + i, a.winner_at(i), value[v], place[v]);
    }
  }
}

template <class T>
using ChunkFunction = void (*)(const View<T>&, const SegmentChunk&, int64_t, int64_t);

/// The function for tiles of 1, 2, 4 or 8 vectors, up to V.
template <SegmentOp kOp, Walk kWalk, class T, int L, int V>
ChunkFunction<T> tile_function(int64_t vectors) {
  if constexpr (V > 1)
    if (vectors < V) return tile_function<kOp, kWalk, T, L, V / 2>(vectors);
  return reduce_chunk<kOp, kWalk, T, L, V>;
}

/// Runs the chunk's tiles: as many vectors at a time as remain, by powers of two.
template <SegmentOp kOp, Walk kWalk, class T, int L>
void run_tiles(const View<T>& a, const SegmentChunk& chunk) {
  const int64_t width = a.k.width;
  if constexpr (L > 1)
    if (width < L) return run_tiles<kOp, kWalk, T, L / 2>(a, chunk);
  constexpr int kFull = kWalk == Walk::either ? kMaxVectors / 2 : kMaxVectors;
  constexpr int kMost = L == simd::kLanes<simd::Compute<T>> ? kFull : L > 1 ? 2 : 1;
  const int64_t vectors = (width + L - 1) / L;
  for (int64_t at = 0; at < vectors;) {
    int64_t tile = kMost;
    while (tile > vectors - at) tile /= 2;
    const int64_t offset = at * L, end = at + tile == vectors ? width : (at + tile) * L;
    // A last vector that overlaps may begin before the tile's own offset, never before the row: width is at least L.
    tile_function<kOp, kWalk, T, L, kMost>(tile)(a, chunk, offset, end - L - offset);
    at += tile;
  }
}

/// A hub's result from its pieces, in their order.
template <SegmentOp kOp, class T>
void join_pieces(const View<T>& a, const SegmentHub& hub) {
  using A = simd::Compute<T>;
  const int64_t width = a.k.width, n = a.k.plan.offsets[hub.segment + 1] - a.k.plan.offsets[hub.segment];
  A* total = a.partials + hub.slot_begin * width;
  const bool best = kOp == SegmentOp::best;
  int32_t* place = best ? a.k.partial_winners + hub.slot_begin * width : nullptr;
  for (int64_t s = hub.slot_begin + 1; s < hub.slot_end; ++s) {
    const A* next = a.partials + s * width;
    const int32_t* next_place = best ? a.k.partial_winners + s * width : nullptr;
    for (int64_t j = 0; j < width; ++j) {
      if constexpr (kOp == SegmentOp::best) {
        const bool wins = beats(next[j], total[j]);
        total[j] = wins ? next[j] : total[j];
        place[j] = wins ? next_place[j] : place[j];
      } else if constexpr (kOp == SegmentOp::mul) {
        total[j] *= next[j];
      } else {
        total[j] += next[j];
      }
    }
  }
  for (int64_t j = 0; j < width; ++j) {
    const int64_t i = hub.segment * width + j;
    finish<kOp, T, 1>(a.k, n, a.initial_at(i), a.out + i, a.winner_at(i), total[j], best ? Place<A>(place[j]) : Place<A>(0));
  }
}

template <SegmentOp kOp, class T>
void reduce(const Args& k) {
  using A = simd::Compute<T>;
  const View<T> a{k,
                  static_cast<const T*>(k.x),
                  static_cast<const A*>(k.center),
                  static_cast<const T*>(k.initial),
                  static_cast<T*>(k.out),
                  static_cast<A*>(k.partials)};
  if (k.width == 0) return;
  constexpr bool usual = sizeof(T) == 4 && (kOp == SegmentOp::sum || kOp == SegmentOp::best);
  const int64_t grain = kForkElements / (kSegmentChunkCost * (k.width + 4)) + 1;
  parallel_for(k.plan.num_chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      if constexpr (!usual)
        run_tiles<kOp, Walk::either, T, simd::kLanes<A>>(a, k.plan.chunks[c]);
      else
        k.plan.order != nullptr ? run_tiles<kOp, Walk::order, T, simd::kLanes<A>>(a, k.plan.chunks[c])
                                : run_tiles<kOp, Walk::sequence, T, simd::kLanes<A>>(a, k.plan.chunks[c]);
    }
  });
  parallel_for(k.plan.num_hubs, 16, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) join_pieces<kOp, T>(a, k.plan.hubs[h]);
  });
}

template <class T>
void reduce_of(const Args& k) {
  switch (k.op) {
    case SegmentOp::sum: return reduce<SegmentOp::sum, T>(k);
    case SegmentOp::square: return reduce<SegmentOp::square, T>(k);
    case SegmentOp::best: return reduce<SegmentOp::best, T>(k);
    case SegmentOp::mul:
      if constexpr (sizeof(T) > 2) reduce<SegmentOp::mul, T>(k);
  }
}

}  // namespace

template <Isa>
void SegmentReduceKernel::cpu(const Args& args) {
  switch (args.type) {
    case FloatType::f32: return reduce_of<float>(args);
    case FloatType::f64: return reduce_of<double>(args);
    case FloatType::bf16: return reduce_of<bf16>(args);
    case FloatType::f16: return reduce_of<f16>(args);
  }
}
template void SegmentReduceKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
