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
TESSERA_INLINE void exponentials(const T* x, int64_t step, int64_t length, int lanes, const T* m, T* y, int64_t y_step, T* sum) {
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

/// Largest of a long row, as `largest`.
template <class T>
TESSERA_INLINE T row_largest(const T* x, int64_t length) {
  T lane[kGroup];
  T m = x[0];
  int64_t j = 0;
  if (length >= kGroup) {
    for (int l = 0; l < kGroup; ++l) lane[l] = x[l];
    for (j = kGroup; j + kGroup <= length; j += kGroup)
      for (int l = 0; l < kGroup; ++l) lane[l] = x[j + l] > lane[l] ? x[j + l] : lane[l];
    for (int l = 0; l < kGroup; ++l) m = lane[l] > m ? lane[l] : m;
  }
  for (; j < length; ++j) m = x[j] > m ? x[j] : m;
  return m == -T(__builtin_inff()) ? T(0) : m;
}

/// Sum of f(j) for j < length, in kGroup lanes joined in a fixed order.
template <class T, class F>
TESSERA_INLINE T row_sum(int64_t length, F f) {
  T lane[kGroup] = {};
  int64_t j = 0;
  for (; j + kGroup <= length; j += kGroup)
    for (int l = 0; l < kGroup; ++l) lane[l] += f(j + l);
  T sum = 0;
  for (; j < length; ++j) sum += f(j);
  for (int step = 1; step < kGroup; step *= 2)
    for (int l = 0; l + step < kGroup; l += 2 * step) lane[l] += lane[l + step];
  return sum + lane[0];
}

}  // namespace TESSERA_TARGET_ISA
}  // namespace softmax_lines
}  // namespace tessera
