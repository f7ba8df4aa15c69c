// Reductions of rows by segment, and their backward passes, on CPUs.
//
// The time is the time of fetching x's rows: each is read once, in the plan's order. A tile of the result row (up to 8
// vectors) stays in registers while the segment's rows are walked and is written once, finished: divided, combined with an
// initial content, rounded to 16 bits. Rows some places ahead are prefetched when an order makes the walk jump about; rows
// in their own order are left to the hardware.
// Widths that are no multiple of the vector overlap the last two vectors of a row instead of masking. Narrow rows use
// narrower vectors and several accumulators, since a sum would otherwise wait for one addition per row.
// The largest and the least are one loop, on x and on -x, which are exact. It keeps the place of the best beside it: a row
// takes over when it is not at most the best and the best is no NaN, so the first of equals and the first NaN stay.
// Work comes in chunks of about equal rows; a hub's pieces are reduced on their own and combined in order at the end. The
// order of a sum depends on the width and the instruction set only.
// The backward pass of a product walks a segment forth and back, multiplying by what is before and what is behind: right
// with any number of zeros, without a division. It needs no memory but the result's.

#include "tessera/core/half.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/segment_reduce_kernels.h"

namespace tessera {
namespace {

constexpr int kMaxVectors = 8;                       // of a tile
constexpr int64_t kAhead = 16;                       // rows between a prefetch and its use
constexpr int64_t kForkElements = int64_t{1} << 18;  // rows x width below which a second thread costs more than it brings
constexpr int64_t kStreamBytes = int64_t{1} << 24;   // results of more bytes are written past the caches

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

/// The integer of T's size.
template <class T>
struct PlaceOf {
  using type = int32_t;
};
template <>
struct PlaceOf<double> {
  using type = int64_t;
};
template <class T>
using Place = typename PlaceOf<T>::type;

template <int L, class T>
TESSERA_INLINE Lanes<simd::Compute<T>, L> get(const T* p) {
  if constexpr (L == 1)
    return simd::Compute<T>(*p);
  else
    return simd::load_compute<L>(p);
}

template <int L, class T>
TESSERA_INLINE void put(T* p, Lanes<simd::Compute<T>, L> v) {
  if constexpr (L == 1)
    *p = T(v);
  else
    simd::store_compute<L>(p, v);
}

/// Stores places as int32.
template <int L, class P>
TESSERA_INLINE void put_places(int32_t* p, Lanes<P, L> v) {
  if constexpr (L == 1)
    *p = int32_t(v);
  else if constexpr (sizeof(P) == 4)
    simd::store<L>(p, v);
  else
    simd::store<L>(p, __builtin_convertvector(v, simd::Vec<int32_t, L>));
}

template <int L, class P>
TESSERA_INLINE Lanes<P, L> get_places(const int32_t* p) {
  if constexpr (L == 1)
    return P(*p);
  else if constexpr (sizeof(P) == 4)
    return simd::load<L>(p);
  else
    return __builtin_convertvector(simd::load<L>(p), simd::Vec<int64_t, L>);
}

template <int L, class P>
TESSERA_INLINE Lanes<P, L> same_place(int64_t k) {
  if constexpr (L == 1)
    return P(k);
  else
    return simd::splat<L>(P(k));
}

/// Where `value` takes the place of `best`: all bits set, or true.
template <class V>
TESSERA_INLINE auto beats(V value, V best) {
  if constexpr (__is_same(V, float) || __is_same(V, double))
    return !(value <= best) && best == best;
  else
    return ~(value <= best) & (best == best);
}

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
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(reinterpret_cast<const char*>(row) + 64 * i);
    if (last % (64 / int(sizeof(T))) != 0) __builtin_prefetch(row + last + L - 1);
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

/// Reduces n > 0 rows to value[] and place[] (from `place0` on). `order` and `ahead` as in the plan; without an order the rows
/// follow each other from x.
template <SegmentOp kOp, bool kOrdered, class T, int L, int V>
TESSERA_INLINE void reduce_rows(const T* x, int64_t width, int64_t last, const int64_t* order, const int64_t* ahead, int64_t n,
                                simd::Compute<T> sign, const Lanes<simd::Compute<T>, L>* center, int64_t place0,
                                Lanes<simd::Compute<T>, L>* value, Lanes<Place<simd::Compute<T>>, L>* place) {
  using A = simd::Compute<T>;
  using M = Tile<T, L, V>;
  using Values = typename M::Values;
  constexpr int U = kOp == SegmentOp::best ? 1 : V == 1 ? 4 : V == 2 ? 2 : 1;  // accumulators per vector
  const auto row_of = [&](int64_t k) __attribute__((always_inline)) {
    if constexpr (kOrdered) {
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
        const Values next = get<L>(row + M::at(v, last)) * sign;
        const auto wins = beats(next, value[v]);
        value[v] = wins ? next : value[v];
        place[v] = wins ? here : place[v];
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
template <SegmentOp kOp, bool kOrdered, class T, int L, int V>
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
    const int64_t* order = kOrdered ? plan.order + begin : nullptr;
    // The last rows prefetch what they are about to read.
    const int64_t* ahead = kOrdered && end + kAhead <= plan.num_rows ? order + kAhead : order;
    const T* x = a.x + offset + (kOrdered ? 0 : begin * width);
    reduce_rows<kOp, kOrdered, T, L, V>(x, width, last, order, ahead, end - begin, sign, center,
                                        begin - plan.offsets[segment], value, place);
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
      finish<kOp, T, L>(a.k, end - begin, a.initial_at(i), a.out + i, a.winner_at(i),
                        value[v], place[v]);
    }
  }
}

template <class T>
using ChunkFunction = void (*)(const View<T>&, const SegmentChunk&, int64_t, int64_t);

/// The function for tiles of 1, 2, 4 or 8 vectors, up to V.
template <SegmentOp kOp, bool kOrdered, class T, int L, int V>
ChunkFunction<T> tile_function(int64_t vectors) {
  if constexpr (V > 1)
    if (vectors < V) return tile_function<kOp, kOrdered, T, L, V / 2>(vectors);
  return reduce_chunk<kOp, kOrdered, T, L, V>;
}

/// Runs the chunk's tiles: as many vectors at a time as remain, by powers of two.
template <SegmentOp kOp, bool kOrdered, class T, int L>
void run_tiles(const View<T>& a, const SegmentChunk& chunk) {
  const int64_t width = a.k.width;
  if constexpr (L > 1)
    if (width < L) return run_tiles<kOp, kOrdered, T, L / 2>(a, chunk);
  constexpr int kMost = L == simd::kLanes<simd::Compute<T>> ? kMaxVectors : L > 1 ? 2 : 1;
  const int64_t vectors = (width + L - 1) / L;
  for (int64_t at = 0; at < vectors;) {
    int64_t tile = kMost;
    while (tile > vectors - at) tile /= 2;
    const int64_t offset = at * L, end = at + tile == vectors ? width : (at + tile) * L;
    // A last vector that overlaps may begin before the tile's own offset, never before the row: width is at least L.
    tile_function<kOp, kOrdered, T, L, kMost>(tile)(a, chunk, offset, end - L - offset);
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
    finish<kOp, T, 1>(a.k, n, a.initial_at(i), a.out + i, a.winner_at(i), total[j],
                      best ? Place<A>(place[j]) : Place<A>(0));
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
  const int64_t grain = kForkElements / (kSegmentChunkCost * (k.width + 4)) + 1;
  parallel_for(k.plan.num_chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c)
      k.plan.order != nullptr ? run_tiles<kOp, true, T, simd::kLanes<A>>(a, k.plan.chunks[c])
                              : run_tiles<kOp, false, T, simd::kLanes<A>>(a, k.plan.chunks[c]);
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

using Spread = SegmentSpreadKernel::Args;

/// The place of a vector of winners that a row of the plan is, or not.
template <class T>
void spread_winner(const Spread& k) {
  using A = simd::Compute<T>;
  constexpr int L = simd::kLanes<float> / (sizeof(A) / 4);
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.out);
  const int64_t width = k.width;
  using Bits = Place<A>;
  using V = simd::Vec<A, L>;
  const int64_t grain = kForkElements / (kSegmentChunkCost * (width + 4)) + 1;
  // Whole aligned lines can be written past the caches.
  const bool stream =
      sizeof(T) == sizeof(A) && width * int64_t(sizeof(T)) % 64 == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0 &&
      k.plan.num_rows * width * int64_t(sizeof(T)) > kStreamBytes;
  parallel_for(k.plan.num_chunks, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s) {
        const int64_t base = k.plan.offsets[s];
        const int64_t begin = chunk.slot >= 0 ? chunk.begin : base, end = chunk.slot >= 0 ? chunk.end : k.plan.offsets[s + 1];
        const T* g = grad + s * width;
        const int32_t* winner = k.winner + s * width;
        for (int64_t p = begin; p < end; ++p) {
          T* row = out + (k.plan.order != nullptr ? k.plan.order[p] : p) * width;
          const auto here = simd::splat<L>(Bits(p - base));
          int64_t j = 0;
          for (; j + L <= width; j += L) {
            const V v = get_places<L, Bits>(winner + j) == here ? get<L>(g + j) : V{};
            if constexpr (sizeof(T) == sizeof(A))
              if (stream) {
                simd::stream(row + j, v);
                continue;
              }
            put<L>(row + j, v);
          }
          for (; j < width; ++j) row[j] = winner[j] == int32_t(p - base) ? g[j] : T();
        }
      }
    }
    simd::stream_fence();
  });
}

template <class T>
void spread_deviation(const Spread& k) {
  using A = simd::Compute<T>;
  const T* x = static_cast<const T*>(k.x);
  const T* grad = static_cast<const T*>(k.grad);
  const A* center = static_cast<const A*>(k.center);
  T* out = static_cast<T*>(k.out);
  const int64_t width = k.width;
  const int64_t grain = kForkElements / (kSegmentChunkCost * (width + 4)) + 1;
  parallel_for(k.plan.num_chunks, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s) {
        const int64_t begin = chunk.slot >= 0 ? chunk.begin : k.plan.offsets[s];
        const int64_t end = chunk.slot >= 0 ? chunk.end : k.plan.offsets[s + 1];
        for (int64_t p = begin; p < end; ++p) {
          const int64_t row = (k.plan.order != nullptr ? k.plan.order[p] : p) * width;
          for (int64_t j = 0; j < width; ++j)
            out[row + j] = T((A(x[row + j]) - center[s * width + j]) * A(grad[s * width + j]));
        }
      }
    }
  });
}

/// Columns [j0, j0 + L) of a segment: what is before a row goes into its result on the way forth, what is behind it on the
/// way back.
template <class T, int L>
TESSERA_INLINE void product_columns(const Spread& k, const T* x, const T* grad, const T* initial, T* out, int64_t s, int64_t j) {
  const int64_t width = k.width, begin = k.plan.offsets[s], end = k.plan.offsets[s + 1];
  const auto at = [&](int64_t p) __attribute__((always_inline)) {
    return (k.plan.order != nullptr ? k.plan.order[p] : p) * width + j;
  };
  Lanes<T, L> before = get<L>(grad + s * width + j);
  if (initial != nullptr) before = before * get<L>(initial + s * width + j);
  for (int64_t p = begin; p < end; ++p) {
    const int64_t i = at(p);
    put<L>(out + i, before);
    before = before * get<L>(x + i);
  }
  Lanes<T, L> behind = Lanes<T, L>{} + T(1);
  for (int64_t p = end - 1; p >= begin; --p) {
    const int64_t i = at(p);
    put<L>(out + i, get<L>(out + i) * behind);
    behind = behind * get<L>(x + i);
  }
}

template <class T>
void spread_product(const Spread& k) {
  constexpr int L = simd::kLanes<T>;
  const T* x = static_cast<const T*>(k.x);
  const T* grad = static_cast<const T*>(k.grad);
  const T* initial = static_cast<const T*>(k.initial);
  T* out = static_cast<T*>(k.out);
  const int64_t grain = kForkElements / (kSegmentChunkCost * (k.width + 4)) + 1;
  parallel_for(k.plan.num_chunks, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      // A hub is walked whole, by the thread that has its first piece.
      if (chunk.slot >= 0 && chunk.begin != k.plan.offsets[chunk.segment_begin]) continue;
      for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s) {
        int64_t j = 0;
        for (; j + L <= k.width; j += L) product_columns<T, L>(k, x, grad, initial, out, s, j);
        for (; j < k.width; ++j) product_columns<T, 1>(k, x, grad, initial, out, s, j);
      }
    }
  });
}

template <class T>
void spread_of(const Spread& k) {
  switch (k.op) {
    case SpreadOp::winner: return spread_winner<T>(k);
    case SpreadOp::deviation: return spread_deviation<T>(k);
    case SpreadOp::product:
      if constexpr (sizeof(T) > 2) spread_product<T>(k);
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

template <Isa>
void SegmentSpreadKernel::cpu(const Args& args) {
  switch (args.type) {
    case FloatType::f32: return spread_of<float>(args);
    case FloatType::f64: return spread_of<double>(args);
    case FloatType::bf16: return spread_of<bf16>(args);
    case FloatType::f16: return spread_of<f16>(args);
  }
}
template void SegmentSpreadKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
