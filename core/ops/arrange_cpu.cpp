// Transposition in squares of registers: as many rows as a register has lanes are read, exchanged among the registers, and
// written as columns, so that both sides move whole vectors. Rows of the input lie far apart, where the processor does not
// read ahead by itself: the next ones are asked for early.

#include "tessera/core/ops/arrange_kernels.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int kSide = simd::kVectorBytes >= 32 ? 8 : 4;

/// The square's row j, at from + j * from_row, becomes its column j.
template <int N>
TESSERA_INLINE void square(const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row) {
  using V = simd::Vec<uint32_t, N>;
  V r[N];
  for (int j = 0; j < N; ++j) r[j] = simd::load<N>(from + j * from_row);
  if constexpr (N == 8) {
    V p[8], q[8];
    for (int j = 0; j < 8; j += 2) {
      p[j] = __builtin_shufflevector(r[j], r[j + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      p[j + 1] = __builtin_shufflevector(r[j], r[j + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int j = 0; j < 8; j += 4) {
      q[j] = __builtin_shufflevector(p[j], p[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      q[j + 1] = __builtin_shufflevector(p[j], p[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      q[j + 2] = __builtin_shufflevector(p[j + 1], p[j + 3], 0, 1, 8, 9, 4, 5, 12, 13);
      q[j + 3] = __builtin_shufflevector(p[j + 1], p[j + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int j = 0; j < 4; ++j) {
      simd::store<8>(to + j * to_row, __builtin_shufflevector(q[j], q[j + 4], 0, 1, 2, 3, 8, 9, 10, 11));
      simd::store<8>(to + (j + 4) * to_row, __builtin_shufflevector(q[j], q[j + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
  } else {
    const V a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7),
            c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    simd::store<4>(to, __builtin_shufflevector(a, c, 0, 1, 4, 5));
    simd::store<4>(to + to_row, __builtin_shufflevector(a, c, 2, 3, 6, 7));
    simd::store<4>(to + 2 * to_row, __builtin_shufflevector(b, d, 0, 1, 4, 5));
    simd::store<4>(to + 3 * to_row, __builtin_shufflevector(b, d, 2, 3, 6, 7));
  }
}

}  // namespace

template <Isa>
void TransposeKernel::cpu(const Args& k) {
  const int64_t rows = k.rows / kSide * kSide, columns = k.columns / kSide * kSide;
  for (int64_t j = 0; j < columns; j += kSide) {
    const uint32_t* from = k.from + j * k.from_row;
    if (j + 4 * kSide <= k.columns)
      for (int l = 0; l < kSide; ++l) __builtin_prefetch(from + (3 * kSide + l) * k.from_row);
    for (int64_t i = 0; i < rows; i += kSide) square<kSide>(from + i, k.from_row, k.to + i * k.to_row + j, k.to_row);
  }
  for (int64_t i = 0; i < k.rows; ++i)
    for (int64_t j = i < rows ? columns : 0; j < k.columns; ++j) k.to[i * k.to_row + j] = k.from[i + j * k.from_row];
}
template void TransposeKernel::cpu<kIsa>(const Args&);

template <Isa>
void SpreadKernel::cpu(const Args& k) {
  const int64_t width = k.width;
  for (int64_t i = 0; i < k.rows; ++i) {
    uint32_t* to = k.to + i * width;
    if (width < kSide) {
      for (int64_t j = 0; j < width; ++j) to[j] = k.from[i];
      continue;
    }
    const auto value = simd::splat<kSide>(k.from[i]);
    for (int64_t j = 0; j + kSide <= width; j += kSide) simd::store<kSide>(to + j, value);
    simd::store<kSide>(to + width - kSide, value);
  }
}
template void SpreadKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
