// Sparse times dense with a weight per edge and head, where heads are a multiple of 4 columns, on CPUs; and the gradient of
// those weights, a dot product per edge and head.
//
// The loop is that of spmm_cpu.cpp (spmm_sum_kernels.h) over blocks of columns that lie within one head each, so a row of x
// is walked once for all heads and each block has a factor of its own, broadcast from the edge's row of weights. Those rows
// are read where they are: with 8 heads one is half a cache line, which is prefetched when edge ids jump about.
//
// The dot products of an edge: both rows are walked once; a head's products are added up in a vector and then across it.

#include "tessera/sparse/spmm_sum_kernels.h"

namespace tessera {
namespace {

template <class T>
constexpr int kMostBlocks = sizeof(T) == 4 ? 8 : 4;

/// Blocks of C columns, or of fewer that divide a head.
template <class T, int C>
Tiling<T> tiling(int64_t width, int64_t head_width) {
  if constexpr (C > 4)
    if (head_width % C != 0) return tiling<T, C / 2>(width, head_width);
  return tiling_of<T, C, kMostBlocks<T>>(
      width, [](int64_t blocks) { return sum_function<T, C, kMostBlocks<T>, kPerHead, kFetchAny>(blocks); });
}

template <class T>
void spmm(const SpmmArgs& k) {
  if (k.width == 0) return;
  const Tiling<T> t = tiling<T, simd::kLanes<simd::Compute<T>>>(k.width, k.width / k.heads);
  sum_rows<T>(k, [&](const SumView<T>& a, const Chunk& chunk) { run_tiles(a, t, chunk, nullptr, 0, k.width); });
}

template <class A, int L>
TESSERA_INLINE A sum_lanes(Lanes<A, L> v) {
  if constexpr (L == 1) {
    return v;
  } else {
    A lanes[L];
    simd::store<L>(lanes, v);
#pragma GCC unroll 4
    for (int half = L / 2; half > 0; half /= 2)
#pragma GCC unroll 16
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    return lanes[0];
  }
}

/// The dot product of n elements, n a multiple of L, or smaller than any vector.
template <class A, int L>
TESSERA_INLINE A dot(const A* a, const A* b, int64_t n) {
  Lanes<A, L> sum = Lanes<A, L>{};
  for (int64_t j = 0; j < n; j += L) sum += get<L>(a + j) * get<L>(b + j);
  return sum_lanes<A, L>(sum);
}

template <class A, int L>
void dot_edges(const HeadDotsKernel::Args& k) {
  const int64_t head_width = k.heads == 0 ? 0 : k.width / k.heads;
  if constexpr (L > 1)
    if (head_width % L != 0) return dot_edges<A, L / 2>(k);
  const A* x = static_cast<const A*>(k.x);
  const A* src_scale = static_cast<const A*>(k.src_scale);
  A* out = static_cast<A*>(k.out);
  const int64_t row_bytes = k.width * int64_t(sizeof(A));
  const int64_t distance = fetch_distance(fetch_of(k.x_rows * row_bytes), (row_bytes + 63) / 64);
  parallel_for(k.num_chunks, chunk_grain(k.width), [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunk& chunk = k.chunks[c];
      for (int64_t d = chunk.row_begin; d < chunk.row_end; ++d) {
        const int64_t row_begin = k.rowptr[d], row_end = k.rowptr[d + 1];
        const int64_t begin = row_begin > chunk.edge_begin ? row_begin : chunk.edge_begin;
        const int64_t end = row_end < chunk.edge_end ? row_end : chunk.edge_end;
        const A* grad = static_cast<const A*>(k.grad) + d * k.width;
        A scale = k.dst_scale != nullptr ? static_cast<const A*>(k.dst_scale)[d] : A(1);
        if (k.mean && begin < end) scale /= A(row_end - row_begin);
        for (int64_t e = begin; e < end; ++e) {
          if (e + distance < k.num_edges) {
            const char* row = reinterpret_cast<const char*>(x + k.col[e + distance] * k.width);
            for (int64_t i = 0; i < row_bytes; i += 64) __builtin_prefetch(row + i, 0, 2);
          }
          const A* row = x + k.col[e] * k.width;
          const A factor = src_scale != nullptr ? scale * src_scale[k.col[e]] : scale;
          A* to = out + (k.edge_id != nullptr ? k.edge_id[e] : e) * k.heads;
          for (int64_t h = 0; h < k.heads; ++h)
            to[h] = dot<A, L>(grad + h * head_width, row + h * head_width, head_width) * factor;
        }
      }
    }
  });
}

}  // namespace

template <Isa>
void SpmmHeadsKernel::cpu(const Args& args) {
  switch (args.type) {
    case FloatType::f32: return spmm<float>(args);
    case FloatType::f64: return spmm<double>(args);
    case FloatType::bf16: return spmm<bf16>(args);
    case FloatType::f16: return spmm<f16>(args);
  }
}
template void SpmmHeadsKernel::cpu<kIsa>(const Args&);

template <Isa>
void HeadDotsKernel::cpu(const Args& args) {
  args.is_double ? dot_edges<double, simd::kLanes<double>>(args) : dot_edges<float, simd::kLanes<float>>(args);
}
template void HeadDotsKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
