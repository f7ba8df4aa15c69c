#pragma once

#include "tessera/core/simd.h"

/// Loads for kernels that add floats up in double.
namespace tessera::simd {

/// As many elements as a register has doubles, as doubles (the compilers convert by halves).
template <class T>
TESSERA_INLINE Vec<double, kLanes<double>> load_doubles(const T* p) {
  using D = Vec<double, kLanes<double>>;
  if constexpr (__is_same(T, float)) {
#if defined(__AVX512F__)
    return (D)_mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX2__)
    return (D)_mm256_cvtps_pd(_mm_loadu_ps(p));
#endif
  }
  return __builtin_convertvector(load<kLanes<double>>(p), D);
}

}  // namespace tessera::simd
