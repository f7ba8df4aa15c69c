#pragma once

#include <cstdint>

#include "tessera/core/simd.h"
#include "tessera/scatter/lanes_kernels.h"
#include "tessera/sparse/spmm_kernels.h"

/// What the CPU kernels of spmm share: typed views of their arguments, factors of a chunk's edges, prefetches.
namespace tessera {
namespace {

constexpr int64_t kForkElements = int64_t{1} << 19;  // edges x width below which a second thread costs more than it brings

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

template <class T>
struct SpmmView {
  using A = simd::Compute<T>;
  const SpmmArgs& k;
  const T* x;
  const A* weight;
  const A* src_scale;
  const A* dst_scale;
  const A* bias;
  T* out;
  A* partials;
  explicit SpmmView(const SpmmArgs& args)
      : k(args),
        x(static_cast<const T*>(args.x)),
        weight(static_cast<const A*>(args.weight)),
        src_scale(static_cast<const A*>(args.src_scale)),
        dst_scale(static_cast<const A*>(args.dst_scale)),
        bias(static_cast<const A*>(args.bias)),
        out(static_cast<T*>(args.out)),
        partials(static_cast<A*>(args.partials)) {}
};

/// Chunks that one thread takes at least.
TESSERA_INLINE int64_t chunk_grain(int64_t width) { return kForkElements / (kChunkCost * (width + kRowCost)) + 1; }

/// The factors of a chunk's edges for one head, times `sign`: where they are already, or gathered into `buffer`, where
/// their cache misses overlap.
template <class T, class A>
const A* edge_factors(const SpmmView<T>& a, const Chunk& chunk, int64_t head, A sign, A* buffer) {
  const int64_t begin = chunk.edge_begin, n = chunk.edge_end - begin, heads = a.k.heads;
  const A* factors = buffer;
  if (a.weight == nullptr) {
    for (int64_t i = 0; i < n; ++i) buffer[i] = sign;
  } else if (a.k.edge_id != nullptr) {
    const int64_t* edge_id = a.k.edge_id + begin;
    const A* weight = a.weight + head;
    for (int64_t i = 0; i < n; ++i) buffer[i] = weight[edge_id[i] * heads] * sign;
  } else if (heads == 1 && sign == A(1)) {
    factors = a.weight + begin;
  } else {
    const A* weight = a.weight + begin * heads + head;
    for (int64_t i = 0; i < n; ++i) buffer[i] = weight[i * heads] * sign;
  }
  if (a.src_scale == nullptr) return factors;
  for (int64_t i = 0; i < n; ++i) buffer[i] = factors[i] * a.src_scale[a.k.col[begin + i]];
  return buffer;
}

/// What a non-empty row's result is multiplied by.
template <class T>
TESSERA_INLINE simd::Compute<T> row_scale(const SpmmView<T>& a, int64_t row) {
  using A = simd::Compute<T>;
  const int64_t n = a.k.rowptr[row + 1] - a.k.rowptr[row];
  if (n == 0) return A(1);
  const A scale = a.dst_scale != nullptr ? a.dst_scale[row] : A(1);
  return a.k.mean ? scale / A(n) : scale;
}

/// Bias and relu of L columns of a result.
template <int L, class T>
TESSERA_INLINE Lanes<simd::Compute<T>, L> with_epilogue(const SpmmView<T>& a, Lanes<simd::Compute<T>, L> value,
                                                        int64_t column) {
  using V = Lanes<simd::Compute<T>, L>;
  if (a.bias != nullptr) value = value + get<L>(a.bias + column);
  if (a.k.relu) value = value < V{} ? V{} : value;  // keeps NaN
  return value;
}

/// Lines of a tile of V vectors of L columns, the last at column `last`.
template <class T, int L, int V>
constexpr int kLines = (V * L * int(sizeof(T)) + 63) / 64;

template <class T, int L, int V, int kLevel>
TESSERA_INLINE void prefetch_tile(const T* row, int64_t last) {
#pragma GCC unroll 32
  for (int i = 0; i < kLines<T, L, V>; ++i) __builtin_prefetch(reinterpret_cast<const char*>(row) + 64 * i, 0, kLevel);
  if (last % (64 / int(sizeof(T))) != 0) __builtin_prefetch(row + last + L - 1, 0, kLevel);
}

}  // namespace
}  // namespace tessera
