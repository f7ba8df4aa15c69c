#pragma once

#include <cstdint>

#include "tessera/core/simd.h"

/// Softmax of lines, for kernel files. A group of kGroup lines stands in the lanes of vectors, element by element: what
/// runs along a line (its largest, its sum) then runs in every lane at once, with no sum across lanes. Short rows are
/// turned into such a group by a transposed copy; lines that stand side by side (inner > 1) are one as they are. A long
/// row is its own group: its elements go through kGroup lanes, which are joined at the end.
namespace tessera {
namespace softmax_lines {
inline namespace TESSERA_TARGET_ISA {

inline constexpr int kGroup = 16;
inline constexpr int64_t kShort = 64;  // rows up to this length are grouped

/// The largest of each line of a group, 0 where it is -inf: exp(-inf - 0) is the 0 that is meant. NaN may be passed over;
/// the sum meets it.
template <class T>
TESSERA_INLINE void largest(const T* x, int64_t step, int64_t length, int lanes, T* m) {
  for (int l = 0; l < lanes; ++l) m[l] = x[l];
  for (int64_t j = 1; j < length; ++j)
    for (int l = 0; l < lanes; ++l) m[l] = x[j * step + l] > m[l] ? x[j * step + l] : m[l];
  for (int l = 0; l < lanes; ++l) m[l] = m[l] == -T(__builtin_inff()) ? T(0) : m[l];
}

/// y = exp(x - m), and its sum.
template <class T>
TESSERA_INLINE void exponentials(const T* x, int64_t step, int64_t length, int lanes, const T* m, T* y, int64_t y_step,
                                 T* sum) {
  for (int l = 0; l < lanes; ++l) sum[l] = 0;
  for (int64_t j = 0; j < length; ++j)
    for (int l = 0; l < lanes; ++l) {
      const T e = simd::exp(x[j * step + l] - m[l]);
      y[j * y_step + l] = e;
      sum[l] += e;
    }
}

/// The sum of exp(x - m) alone.
template <class T>
TESSERA_INLINE void sum_exponentials(const T* x, int64_t step, int64_t length, int lanes, const T* m, T* sum) {
  for (int l = 0; l < lanes; ++l) sum[l] = 0;
  for (int64_t j = 0; j < length; ++j)
    for (int l = 0; l < lanes; ++l) sum[l] += simd::exp(x[j * step + l] - m[l]);
}

/// Rows r0.. of x, at most kGroup, as a group: buffer[j][l] is row l's element j. Absent rows repeat the last.
template <class T>
TESSERA_INLINE void gather_rows(const T* const* rows, int count, int64_t length, T* buffer) {
  for (int l = 0; l < kGroup; ++l) {
    const T* row = rows[l < count ? l : count - 1];
    for (int64_t j = 0; j < length; ++j) buffer[j * kGroup + l] = row[j];
  }
}

template <class T>
TESSERA_INLINE void scatter_rows(const T* buffer, int count, int64_t length, T* rows) {
  for (int l = 0; l < count; ++l)
    for (int64_t j = 0; j < length; ++j) rows[l * length + j] = buffer[j * kGroup + l];
}

/// All lanes as one, halves first.
template <class T, class F>
TESSERA_INLINE T joined(T (&lane)[kGroup], F f) {
  static_assert(kGroup == 16);
  for (int l = 0; l < 8; ++l) lane[l] = f(lane[l], lane[l + 8]);
  for (int l = 0; l < 4; ++l) lane[l] = f(lane[l], lane[l + 4]);
  return f(f(lane[0], lane[2]), f(lane[1], lane[3]));
}

/// Largest of a row of kGroup elements or more, as `largest`. The last kGroup overlap those before.
template <class T>
TESSERA_INLINE T row_largest(const T* x, int64_t length) {
  T lane[kGroup];
  for (int l = 0; l < kGroup; ++l) lane[l] = x[length - kGroup + l];
  for (int64_t j = 0; j + kGroup <= length; j += kGroup)
    for (int l = 0; l < kGroup; ++l) lane[l] = x[j + l] > lane[l] ? x[j + l] : lane[l];
  const T m = joined(lane, [](T a, T b) { return b > a ? b : a; });
  return m == -T(__builtin_inff()) ? T(0) : m;
}

/// Sum of f(j) for j < length, kGroup or more, in kGroup lanes joined in a fixed order. f is called twice for some j.
template <class T, class F>
TESSERA_INLINE T row_sum(int64_t length, F f) {
  T lane[kGroup] = {};
  int64_t j = 0;
  for (; j + kGroup <= length; j += kGroup)
    for (int l = 0; l < kGroup; ++l) lane[l] += f(j + l);
  if (j < length) {
    const int known = int(kGroup - (length - j));
    T tail[kGroup];
    for (int l = 0; l < kGroup; ++l) tail[l] = f(length - kGroup + l);
    // As vectors: the compiler's own idea of this is a loop from lane `known` on, one by one.
    using V = simd::Vec<T, kGroup>;
    const V fresh = simd::iota<T, kGroup>() < simd::splat<kGroup>(T(known)) ? V{} : simd::load<kGroup>(tail);
    simd::store<kGroup>(lane, simd::load<kGroup>(lane) + fresh);
  }
  return joined(lane, [](T a, T b) { return a + b; });
}

/// out[j] = f(j, in[j]) for j < length, kGroup or more. in may be out; f is called twice for some j.
template <class T, class F>
TESSERA_INLINE void row_map(int64_t length, const T* in, T* out, F f) {
  const int64_t last = length - kGroup;
  T tail[kGroup];
  for (int l = 0; l < kGroup; ++l) tail[l] = f(last + l, in[last + l]);
  for (int64_t j = 0; j < last; j += kGroup)
    for (int l = 0; l < kGroup; ++l) out[j + l] = f(j + l, in[j + l]);
  for (int l = 0; l < kGroup; ++l) out[last + l] = tail[l];
}

}  // namespace TESSERA_TARGET_ISA
}  // namespace softmax_lines
}  // namespace tessera
