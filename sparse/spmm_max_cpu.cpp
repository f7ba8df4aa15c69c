// Sparse times dense with a maximum or a minimum, and its way back, on CPUs.
//
// Forward: a tile of the result row (4 vectors with 16 registers, 8 with 32) stays in registers while the row's edges are
// walked, with the place of the best edge beside each column: a compare and two blends for a vector of columns, places
// being as wide as the values. The smallest is the largest of the negated, which is exact. A row takes over when it is not
// at most the best and the best is no NaN, so the first of equals and the first NaN stay. Places are written only when a
// gradient will be wanted. A tile being half of a sum's, the tiles of a row follow each other while its sources are in the
// cache: the first walk prefetches whole rows of x, the others find them. Chunks, hubs and narrow rows are as in
// sparse/spmm_cpu.cpp.
//
// Back to x: each element of the result has one winner, so rows x width values are scattered rather than edges x width
// gathered: 1 / degree of the work, though every store goes elsewhere. Nothing is atomic and every sum runs in the order of
// the rows, since a task owns columns: some cache lines of each row of x, of all sources or, with more threads than lines,
// of a range of them. Which tasks there are changes no sum. Measured (AVX2, 64 columns) against a pull over the transpose
// that compares places: 2.4 times as fast at 20 edges a row in the cache, 6 times at 86 edges a row out of it.
// Back to the weights: a row owns its edges, so rows are shared out.

#include "tessera/core/parallel.h"
#include "tessera/sparse/spmm_tile_kernels.h"

namespace tessera {
namespace {

constexpr int kMaxVectors = simd::kRegisters / 4;  // of a tile

template <class T>
struct View : SpmmView<T> {
  const SpmmMaxKernel::Args& max;
  simd::Compute<T> sign;
  Fetch fetch;
};

/// A finished tile: value and places of a row's best, in `last` and before.
template <class T, int L>
TESSERA_INLINE void finish(const View<T>& a, int64_t row, int64_t column, simd::Compute<T> scale,
                           Lanes<simd::Compute<T>, L> value) {
  put<L>(a.out + row * a.k.width + column, with_epilogue<L>(a, Lanes<simd::Compute<T>, L>(value * scale), column));
}

/// Edges of a row: all of them, or a piece of a hub with its slot.
template <class A>
struct Row {
  int64_t d, begin, n;
  int64_t place;     // of the first edge in its row
  int64_t slot;      // -1: a whole row
  const A* factors;  // of the edges, or null
};

/// Columns [offset, offset + last + L) of a row. `fetch_bytes` of the rows of x some edges ahead, from `offset` on, are
/// prefetched.
template <class T, int L, int V, bool kFactors, bool kWinner>
void best_tile(const View<T>& a, const Row<simd::Compute<T>>& row, int64_t offset, int64_t last, int64_t fetch_bytes) {
  using A = simd::Compute<T>;
  using Values = Lanes<A, L>;
  using Places = Lanes<Place<A>, L>;
  const int64_t width = a.k.width, n = row.n;
  const bool winner = kWinner && a.max.winner != nullptr;
  const T* x = a.x + offset;
  const auto at = [last](int v) __attribute__((always_inline)) { return v == V - 1 ? last : v * L; };
  if (n == 0) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      finish<T, L>(a, row.d, offset + at(v), A(1), Values{});
      if (winner) put_places<L, Place<A>>(a.max.winner + row.d * width + offset + at(v), same_place<L, Place<A>>(-1));
    }
    return;
  }
  const int32_t* col = a.k.col + row.begin;
  // The last rows of the graph prefetch what they are about to read.
  const int64_t distance = fetch_distance(a.fetch, (fetch_bytes + 63) / 64);
  const int32_t* ahead = row.begin + n + distance <= a.k.num_edges ? col + distance : col;
  const A* factor = row.factors;
  Values best[V];
  Places place[V];
  const auto message = [&](int64_t k, int v) __attribute__((always_inline)) {
    const Values value = get<L>(x + col[k] * width + at(v));
    if constexpr (kFactors)
      return Values(value * factor[k]);
    else
      return value;
  };
  const auto fetch = [&](int64_t k) __attribute__((always_inline)) {
    const char* next = reinterpret_cast<const char*>(x + ahead[k] * width);
    if (a.fetch == Fetch::far)
      for (int64_t i = 0; i < fetch_bytes; i += 64) __builtin_prefetch(next + i, 0, 2);
    else
      for (int64_t i = 0; i < fetch_bytes; i += 64) __builtin_prefetch(next + i, 0, 3);
  };
  fetch(0);
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    best[v] = message(0, v);
    place[v] = same_place<L, Place<A>>(row.place);
  }
  for (int64_t k = 1; k < n; ++k) {
    fetch(k);
    const Places here = same_place<L, Place<A>>(row.place + k);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const Values next = message(k, v);
      if constexpr (kWinner)
        take<Values>(next, here, best[v], place[v]);
      else
        best[v] = beats(next, best[v]) ? next : best[v];
    }
  }
  if (row.slot >= 0) {
    const int64_t to = row.slot * width + offset;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      put<L>(a.partials + to + at(v), best[v]);
      if (winner) put_places<L, Place<A>>(a.max.partial_winners + to + at(v), place[v]);
    }
    return;
  }
  const A scale = row_scale(a, row.d) * a.sign;
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) {
    finish<T, L>(a, row.d, offset + at(v), scale, best[v]);
    if (winner) put_places<L, Place<A>>(a.max.winner + row.d * width + offset + at(v), place[v]);
  }
}

template <class T>
using TileFunction = void (*)(const View<T>&, const Row<simd::Compute<T>>&, int64_t, int64_t, int64_t);

/// Floats have all forms; other types, to save compile time, the one that does everything.
template <class T>
constexpr bool kAllForms = __is_same(T, float);

template <class T, int L, int V>
TileFunction<T> tile_function(bool factors, bool winner) {
  if constexpr (kAllForms<T>) {
    if (!winner) return factors ? best_tile<T, L, V, true, false> : best_tile<T, L, V, false, false>;
    if (!factors) return best_tile<T, L, V, false, true>;
  }
  return best_tile<T, L, V, true, true>;
}

/// The function for tiles of 1, 2, 4 or 8 vectors, up to V.
template <class T, int L, int V>
TileFunction<T> tile_function(int64_t vectors, bool factors, bool winner) {
  if constexpr (V > 1)
    if (vectors < V) return tile_function<T, L, V / 2>(vectors, factors, winner);
  return tile_function<T, L, V>(factors, winner);
}

/// Columns [begin, end) of a row: as many vectors at a time as remain, by powers of two.
template <class T, int L>
void run_tiles(const View<T>& a, const Row<simd::Compute<T>>& row, int64_t begin, int64_t end) {
  const int64_t width = end - begin;
  if constexpr (L > 1)
    if (width < L) return run_tiles<T, L / 2>(a, row, begin, end);
  constexpr int kMost = L == simd::kLanes<simd::Compute<T>> ? kMaxVectors : L > 1 ? 2 : 1;
  const int64_t vectors = (width + L - 1) / L;
  for (int64_t at = 0; at < vectors;) {
    int64_t tile = kMost;
    while (tile > vectors - at) tile /= 2;
    const int64_t offset = begin + at * L, tile_end = at + tile == vectors ? end : begin + (at + tile) * L;
    // A last vector that overlaps may begin before the tile's own offset, never before `begin`: the width is at least L.
    tile_function<T, L, kMost>(tile, row.factors != nullptr, a.max.winner != nullptr)(
        a, row, offset, tile_end - L - offset, at == 0 && a.fetch != Fetch::none ? width * int64_t(sizeof(T)) : 0);
    at += tile;
  }
}

/// A chunk's rows, or the piece of a hub that it is, for the columns of one head.
template <class T>
void best_chunk(const View<T>& a, const Chunk& chunk, const simd::Compute<T>* factors, int64_t begin, int64_t end) {
  using A = simd::Compute<T>;
  const auto row = [&](int64_t d, int64_t first, int64_t last) {
    run_tiles<T, simd::kLanes<A>>(a,
                                  {d, first, last - first, first - a.k.rowptr[d], chunk.slot,
                                   factors != nullptr ? factors + (first - chunk.edge_begin) : nullptr},
                                  begin, end);
  };
  if (chunk.slot >= 0) return row(chunk.row_begin, chunk.edge_begin, chunk.edge_end);
  for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d) row(d, a.k.rowptr[d], a.k.rowptr[d + 1]);
}

/// A hub's result from its pieces, in their order.
template <class T>
void join_pieces(const View<T>& a, const Hub& hub) {
  using A = simd::Compute<T>;
  const int64_t width = a.k.width;
  A* best = a.partials + hub.slot_begin * width;
  int32_t* place = a.max.winner != nullptr ? a.max.partial_winners + hub.slot_begin * width : nullptr;
  for (int64_t s = hub.slot_begin + 1; s < hub.slot_end; ++s) {
    const A* next = a.partials + s * width;
    for (int64_t j = 0; j < width; ++j) {
      if (!beats(next[j], best[j])) continue;
      best[j] = next[j];
      if (place != nullptr) place[j] = a.max.partial_winners[s * width + j];
    }
  }
  const A scale = row_scale(a, hub.row) * a.sign;
  for (int64_t j = 0; j < width; ++j) {
    finish<T, 1>(a, hub.row, j, scale, best[j]);
    if (place != nullptr) a.max.winner[hub.row * width + j] = place[j];
  }
}

template <class T>
void best(const SpmmMaxKernel::Args& args) {
  using A = simd::Compute<T>;
  const SpmmArgs& k = args.spmm;
  if (k.width == 0) return;
  const View<T> a{SpmmView<T>(k), args, args.smallest ? A(-1) : A(1), fetch_of(k.x_rows * k.width * int64_t(sizeof(T)))};
  const bool factors = !kAllForms<T> || args.smallest || k.weight != nullptr || k.src_scale != nullptr;
  parallel_for(k.num_chunks, chunk_grain(k.width), [&](int64_t first, int64_t last) {
    A buffer[kHubEdges];
    const int64_t columns = k.width / k.heads;
    for (int64_t c = first; c < last; ++c)
      for (int64_t h = 0; h < k.heads; ++h)
        best_chunk(a, k.chunks[c], factors ? edge_factors(a, k.chunks[c], h, a.sign, buffer) : nullptr, h * columns,
                   (h + 1) * columns);
  });
  parallel_for(k.num_hubs, 16, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) join_pieces(a, k.hubs[h]);
  });
}

/// Columns [j0, j1) of x's gradient, for sources [s0, s1).
template <class T, bool kWeighted, bool kAllSources>
void scatter_columns(const SpmmMaxGradKernel::Args& k, int64_t j0, int64_t j1, int64_t s0, int64_t s1) {
  using A = simd::Compute<T>;
  const int64_t width = k.width, head_width = width / k.heads;
  const A* weight = static_cast<const A*>(k.weight);
  const A* src_scale = static_cast<const A*>(k.src_scale);
  const A* dst_scale = static_cast<const A*>(k.dst_scale);
  A* out = static_cast<A*>(k.x_grad);
  for (int64_t d = 0; d < k.rows; ++d) {
    const int64_t base = k.rowptr[d];
    if (base == k.rowptr[d + 1]) continue;
    const T* grad = static_cast<const T*>(k.grad) + d * width;
    const int32_t* winner = k.winner + d * width;
    const int32_t* col = k.col + base;
    const A scale = dst_scale != nullptr ? dst_scale[d] : A(1);
    for (int64_t j = j0; j < j1; ++j) {
      const int64_t s = col[winner[j]];
      if (!kAllSources && (s < s0 || s >= s1)) continue;
      A factor = scale;
      if constexpr (kWeighted) {
        if (weight != nullptr) {
          const int64_t e = base + winner[j];
          factor *= weight[(k.edge_id != nullptr ? k.edge_id[e] : e) * k.heads + (k.heads == 1 ? 0 : j / head_width)];
        }
        if (src_scale != nullptr) factor *= src_scale[s];
      }
      A& to = out[s * width + j];
      to = multiply_add(A(grad[j]), factor, to);
    }
  }
}

template <class T>
void scatter_to_x(const SpmmMaxGradKernel::Args& k) {
  constexpr int64_t kLine = 64 / int64_t(sizeof(simd::Compute<T>));
  const int64_t lines = (k.width + kLine - 1) / kLine, workers = threads();
  const int64_t strips = lines < workers ? lines : workers, ranges = (workers + strips - 1) / strips;
  const auto scatter = k.weight != nullptr || k.src_scale != nullptr
                           ? (ranges == 1 ? scatter_columns<T, true, true> : scatter_columns<T, true, false>)
                           : (ranges == 1 ? scatter_columns<T, false, true> : scatter_columns<T, false, false>);
  const bool fork = k.rows * k.width > kForkElements / 16;
  parallel_for(strips * ranges, fork ? 1 : strips * ranges, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t strip = i / ranges, range = i % ranges, end = lines * (strip + 1) / strips * kLine;
      scatter(k, lines * strip / strips * kLine, end < k.width ? end : k.width, k.x_rows * range / ranges,
              k.x_rows * (range + 1) / ranges);
    }
  });
}

template <class T>
void scatter_to_weight(const SpmmMaxGradKernel::Args& k) {
  using A = simd::Compute<T>;
  const T* x = static_cast<const T*>(k.x);
  const A* src_scale = static_cast<const A*>(k.src_scale);
  const A* dst_scale = static_cast<const A*>(k.dst_scale);
  A* out = static_cast<A*>(k.weight_grad);
  const int64_t width = k.width, head_width = width / k.heads;
  parallel_for(k.rows, kForkElements / 16 / (width + kRowCost) + 1, [=, &k](int64_t first, int64_t last) {
    for (int64_t d = first; d < last; ++d) {
      const int64_t base = k.rowptr[d];
      if (base == k.rowptr[d + 1]) continue;
      const T* grad = static_cast<const T*>(k.grad) + d * width;
      const int32_t* winner = k.winner + d * width;
      const A scale = dst_scale != nullptr ? dst_scale[d] : A(1);
      for (int64_t j = 0; j < width; ++j) {
        const int64_t e = base + winner[j], s = k.col[e];
        const A factor = A(x[s * width + j]) * (src_scale != nullptr ? scale * src_scale[s] : scale);
        A& to = out[(k.edge_id != nullptr ? k.edge_id[e] : e) * k.heads + (k.heads == 1 ? 0 : j / head_width)];
        to = multiply_add(A(grad[j]), factor, to);
      }
    }
  });
}

template <class T>
void scatter_back(const SpmmMaxGradKernel::Args& k) {
  if (k.width == 0) return;
  if (k.x_grad != nullptr) scatter_to_x<T>(k);
  if (k.weight_grad != nullptr) scatter_to_weight<T>(k);
}

/// Calls `f` with a null pointer to the type.
template <class F>
TESSERA_INLINE void with_type(FloatType type, F f) {
  switch (type) {
    case FloatType::f32: return f(static_cast<float*>(nullptr));
    case FloatType::f64: return f(static_cast<double*>(nullptr));
    case FloatType::bf16: return f(static_cast<bf16*>(nullptr));
    case FloatType::f16: return f(static_cast<f16*>(nullptr));
  }
}

}  // namespace

template <Isa>
void SpmmMaxKernel::cpu(const Args& args) {
  with_type(args.spmm.type, [&]<class T>(T*) { best<T>(args); });
}
template void SpmmMaxKernel::cpu<kIsa>(const Args&);

template <Isa>
void SpmmMaxGradKernel::cpu(const Args& args) {
  with_type(args.type, [&]<class T>(T*) { scatter_back<T>(args); });
}
template void SpmmMaxGradKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
