// One dot product per edge, on CPUs.
//
// A row's edges are taken four at a time: each vector of the row's own side is loaded once for the four, which have an
// accumulator each, and the four sums are folded together at the end. The last group of a row repeats its last edge, so
// every edge goes through the same instructions wherever it stands. Widths that are no multiple of the vector read the
// last vector overlapping and clear the lanes that were counted already, on both sides (0 * inf would be NaN).
// Rows of the other side are prefetched as in sparse/spmm_cpu.cpp, and the chunks of work are the same.
//
// A row per edge is written as it is read; its gradient is pulled: each node sums its own edges' rows in order, a hub's
// pieces on their own, added in order at the end.

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/sparse/edge_blocks_kernels.h"
#include "tessera/sparse/sddmm_kernels.h"

namespace tessera {
namespace {

constexpr int64_t kForkElements = int64_t{1} << 19;  // edges x width below which a second thread costs more than it brings

/// Integers of the width of T, for masks.
template <class T>
struct BitsOf {
  using type = int32_t;
};
template <>
struct BitsOf<double> {
  using type = int64_t;
};

/// sums[i] = dot(a, b[i]); width >= L.
template <class T, int L>
TESSERA_INLINE void dot_four(const T* a, const T* const* b, int64_t width, T* sums) {
  if constexpr (L == 1) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = a[0] * b[i][0];
  } else {
    using V = simd::Vec<T, L>;
    using Mask = simd::Vec<typename BitsOf<T>::type, L>;
    V sum[4] = {};
    int64_t j = 0;
    for (; j + L <= width; j += L) {
      const V av = simd::load<L>(a + j);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sum[i] += av * simd::load<L>(b[i] + j);
    }
    if (j < width) {
      const int64_t tail = width - L;  // lanes below j - tail were counted
      Mask lane;
#pragma GCC unroll 16
      for (int l = 0; l < L; ++l) lane[l] = l;
      const Mask fresh = lane >= Mask{} + typename BitsOf<T>::type(j - tail);
      const V av = V(Mask(simd::load<L>(a + tail)) & fresh);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sum[i] += av * V(Mask(simd::load<L>(b[i] + tail)) & fresh);
    }
    edge_blocks::sum_four<T, L>(sum, sums);
  }
}

template <class T, int L, Fetch kFetch>
void dot_chunk(const SddmmKernel::Args& k, const Chunk& chunk) {
  constexpr int kLevel = kFetch == Fetch::near ? 3 : 2;  // prefetcht0, prefetcht1
  const int64_t width = k.width, bytes = width * int64_t(sizeof(T)), ahead = fetch_distance(kFetch, (bytes + 63) / 64);
  const T* b = static_cast<const T*>(k.b);
  const T* src_scale = static_cast<const T*>(k.src_scale);
  const T* dst_scale = static_cast<const T*>(k.dst_scale);
  T* out = static_cast<T*>(k.out);
  for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d) {
    const int64_t row_begin = k.rowptr[d], row_end = k.rowptr[d + 1];
    const int64_t begin = row_begin > chunk.edge_begin ? row_begin : chunk.edge_begin;
    const int64_t end = row_end < chunk.edge_end ? row_end : chunk.edge_end;
    T scale = dst_scale != nullptr ? dst_scale[d] : T(1);
    if (k.mean && begin < end) scale /= T(row_end - row_begin);
    const T* a = static_cast<const T*>(k.a) + d * width;
    for (int64_t e = begin; e < end; e += 4) {
      const int64_t n = end - e < 4 ? end - e : 4;
      const T* rows[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) rows[i] = b + k.col[e + (i < n ? i : n - 1)] * width;
      if constexpr (kFetch != Fetch::none) {
        if (e + ahead + 4 <= k.num_edges)
          for (int i = 0; i < 4; ++i) {
            const char* row = reinterpret_cast<const char*>(b + k.col[e + ahead + i] * width);
            for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at, 0, kLevel);
          }
      }
      T sums[4];
      dot_four<T, L>(a, rows, width, sums);
      for (int i = 0; i < n; ++i) {
        const T factor = src_scale != nullptr ? scale * src_scale[k.col[e + i]] : scale;
        out[k.edge_id != nullptr ? k.edge_id[e + i] : e + i] = sums[i] * factor;
      }
    }
  }
}

template <class T, int L>
void dot_edges(const SddmmKernel::Args& k) {
  if constexpr (L > 1)
    if (k.width < L) return dot_edges<T, L / 2>(k);
  const Fetch fetch = fetch_of(k.b_rows * k.width * int64_t(sizeof(T)));
  const auto chunk = fetch == Fetch::none   ? dot_chunk<T, L, Fetch::none>
                     : fetch == Fetch::near ? dot_chunk<T, L, Fetch::near>
                                            : dot_chunk<T, L, Fetch::far>;
  const int64_t grain = kForkElements / (kChunkCost * (k.width + kRowCost)) + 1;
  parallel_for(k.num_chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) chunk(k, k.chunks[c]);
  });
}

template <class T>
void sddmm(const SddmmKernel::Args& k) {
  if (k.width > 0) return dot_edges<T, simd::kLanes<T>>(k);
  T* out = static_cast<T*>(k.out);
  for (int64_t e = 0; e < k.num_edges; ++e) out[e] = T(0);
}

using edge_blocks::for_columns;
using edge_blocks::get;
using edge_blocks::put;
using RowsArgs = SddmmRowsKernel::Args;
using Form = SddmmRowsKernel::Form;

constexpr int64_t kBlock = 64;  // edges whose factors are gathered together

template <class T>
struct EdgeRows {
  const RowsArgs& k;
  const T* const a = static_cast<const T*>(k.a);
  const T* const b = static_cast<const T*>(k.b);
  const int64_t width = k.heads > 0 ? k.heads* k.channels : k.channels;

  int64_t id(int64_t position) const { return k.edge_id != nullptr ? k.edge_id[position] : position; }

  void join(int64_t d, int64_t begin, int64_t end) const {
    const T* x = a + d * width;
    for (int64_t e = begin; e < end; ++e) {
      const T* y = b + k.col[e] * width;
      T* out = static_cast<T*>(k.out) + id(e) * (k.form == Form::dots ? k.heads : width);
      switch (k.form) {
        case Form::add:
          for_columns<T>(0, width, [=]<int L>(int64_t c) { put<L>(out + c, get<L>(x + c) + get<L>(y + c)); });
          break;
        case Form::sub:
          for_columns<T>(0, width, [=]<int L>(int64_t c) { put<L>(out + c, get<L>(x + c) - get<L>(y + c)); });
          break;
        case Form::mul:
          for_columns<T>(0, width, [=]<int L>(int64_t c) { put<L>(out + c, get<L>(x + c) * get<L>(y + c)); });
          break;
        case Form::dots: edge_blocks::dots<T>(1, k.heads, k.channels, {x, 0}, {y, 0}, T(1), out); break;
        case Form::pull: break;
      }
    }
  }

  void pull(int64_t begin, int64_t end, T* sum) const {
    for (int64_t j = 0; j < width; ++j) sum[j] = T(0);
    if (k.heads == 0) {
      for (int64_t e = begin; e < end; ++e) {
        const T *g = a + id(e) * width, *y = b != nullptr ? b + k.col[e] * width : nullptr;
        for_columns<T>(0, width, [=]<int L>(int64_t c) {
          put<L>(sum + c, get<L>(sum + c) + (y != nullptr ? get<L>(g + c) * get<L>(y + c) : get<L>(g + c)));
        });
      }
      return;
    }
    T weight[kBlock];
    const int64_t block = k.heads < kBlock ? kBlock / k.heads : 1;
    for (int64_t e = begin; e < end; e += block) {
      const int64_t n = end - e < block ? end - e : block;
      if (k.heads > kBlock) {
        edge_blocks::add_rows<T>(1, k.heads, k.channels, a + id(e) * k.heads, {b, width, k.col + e}, sum);
        continue;
      }
      for (int64_t i = 0; i < n; ++i)
        for (int64_t h = 0; h < k.heads; ++h) weight[i * k.heads + h] = a[id(e + i) * k.heads + h];
      edge_blocks::add_rows<T>(n, k.heads, k.channels, weight, {b, width, k.col + e}, sum);
    }
  }

  void scale(T* out) const {
    if (k.factor == 1) return;
    for (int64_t j = 0; j < width; ++j) out[j] *= T(k.factor);
  }
};

template <class T>
void edge_rows(const RowsArgs& k) {
  const EdgeRows<T> rows{k};
  T *out = static_cast<T*>(k.out), *partials = static_cast<T*>(k.partials);
  const int64_t grain = kForkElements / (kChunkCost * (rows.width + kRowCost)) + 1;
  parallel_for(k.num_chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunk& chunk = k.chunks[c];
      for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d) {
        const int64_t begin = k.rowptr[d] > chunk.edge_begin ? k.rowptr[d] : chunk.edge_begin;
        const int64_t end = k.rowptr[d + 1] < chunk.edge_end ? k.rowptr[d + 1] : chunk.edge_end;
        if (k.form != Form::pull) {
          rows.join(d, begin, end);
        } else if (chunk.slot >= 0) {
          rows.pull(begin, end, partials + chunk.slot * rows.width);
        } else {
          rows.pull(begin, end, out + d * rows.width);
          rows.scale(out + d * rows.width);
        }
      }
    }
  });
  if (k.form != Form::pull) return;
  parallel_for(k.num_hubs, 16, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) {
      const Hub& hub = k.hubs[h];
      T* to = out + hub.row * rows.width;
      for (int64_t j = 0; j < rows.width; ++j) to[j] = partials[hub.slot_begin * rows.width + j];
      for (int64_t s = hub.slot_begin + 1; s < hub.slot_end; ++s)
        for (int64_t j = 0; j < rows.width; ++j) to[j] += partials[s * rows.width + j];
      rows.scale(to);
    }
  });
}

}  // namespace

template <Isa>
void SddmmKernel::cpu(const Args& args) {
  args.is_double ? sddmm<double>(args) : sddmm<float>(args);
}
template void SddmmKernel::cpu<kIsa>(const Args&);

template <Isa>
void SddmmRowsKernel::cpu(const Args& args) {
  args.is_double ? edge_rows<double>(args) : edge_rows<float>(args);
}
template void SddmmRowsKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
