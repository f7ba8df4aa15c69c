#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "tessera/core/half.h"
#include "tessera/core/isa.h"

/// Short vectors for CPU kernel files, which the build compiles once per instruction set with TESSERA_TARGET_ISA set to
/// its name. Vectors are the compiler's own (GCC and clang vector extension), so + - * / < and ?: work on them.
/// Everything is in a namespace of the instruction set: no inline function of one set can stand in for another's.
#ifndef TESSERA_TARGET_ISA
#error "core/simd.h is for *_cpu.cpp files only"
#endif

#define TESSERA_INLINE [[gnu::always_inline]] inline

namespace tessera {

inline constexpr Isa kIsa = Isa::TESSERA_TARGET_ISA;

namespace simd {
inline namespace TESSERA_TARGET_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

/// Vector registers of the instruction set.
inline constexpr int kRegisters = kVectorBytes == 64 ? 32 : 16;

template <class T, int N>
struct VecOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
  typedef T unaligned __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
};

/// N lanes of T.
template <class T, int N>
using Vec = typename VecOf<T, N>::type;

/// Lanes of T in a full register.
template <class T>
inline constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <int N, class T>
TESSERA_INLINE Vec<T, N> load(const T* p) {
  return *reinterpret_cast<const typename VecOf<T, N>::unaligned*>(p);
}
template <int N, class T>
TESSERA_INLINE void store(T* p, Vec<T, N> v) {
  *reinterpret_cast<typename VecOf<T, N>::unaligned*>(p) = v;
}
template <int N, class T>
TESSERA_INLINE Vec<T, N> splat(T x) {
  return x - Vec<T, N>{};
}

/// What elements of type T are computed in: float for 16-bit storage, else T itself.
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<bf16> {
  using type = float;
};
template <>
struct ComputeOf<f16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

/// Stores a full register past the caches; `p` is aligned to it. After the loop `stream_fence`.
template <class T>
TESSERA_INLINE void stream(T* p, Vec<T, kLanes<T>> v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#else
  *reinterpret_cast<Vec<T, kLanes<T>>*>(p) = v;
#endif
}

/// Makes streamed stores of this thread visible before what it stores next.
TESSERA_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// N elements, 16-bit ones converted to float.
template <int N, class T>
TESSERA_INLINE Vec<Compute<T>, N> load_compute(const T* p) {
  if constexpr (sizeof(T) != 2) {
    return load<N>(p);
  } else {
    using Wide = Vec<uint32_t, N>;
    using F = Vec<float, N>;
#if defined(__F16C__)
    if constexpr (__is_same(T, f16)) {
      if constexpr (N == 8) return (F)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#if defined(__AVX512F__)
      if constexpr (N == 16) return (F)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#endif
    }
#endif
    const Wide bits = __builtin_convertvector(load<N>(reinterpret_cast<const uint16_t*>(p)), Wide);
    if constexpr (__is_same(T, bf16)) {
      return (F)(bits << 16);
    } else {  // as f16's own conversion
      const Wide sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
      const F scaled = (F)rest * __builtin_bit_cast(float, 0x77800000u);
      return rest >= 0x0f800000u ? (F)(sign | 0x70000000u | rest) : (F)(sign | (Wide)scaled);
    }
  }
}

/// Stores N elements, rounded to nearest even when T has 16 bits.
template <int N, class T>
TESSERA_INLINE void store_compute(T* p, Vec<Compute<T>, N> v) {
  if constexpr (sizeof(T) != 2) {
    store<N>(p, v);
  } else {
    using Wide = Vec<uint32_t, N>;
    using Narrow = Vec<uint16_t, N>;
#if defined(__F16C__)
    if constexpr (__is_same(T, f16)) {
      if constexpr (N == 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, 0));
        return;
      }
#if defined(__AVX512F__)
      if constexpr (N == 16) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph((__m512)v, 0));
        return;
      }
#endif
    }
#endif
    const Wide b = (Wide)v;
    if constexpr (__is_same(T, bf16)) {
      const Wide rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16, kept = (b >> 16) | 0x40u;
      store<N>(reinterpret_cast<uint16_t*>(p),
               __builtin_convertvector((b & 0x7fffffffu) > 0x7f800000u ? kept : rounded, Narrow));
    } else {
      for (int i = 0; i < N; ++i) p[i] = f16(v[i]);
    }
  }
}

/// 0, 1, 2, ...
template <class T, int N>
TESSERA_INLINE Vec<T, N> iota() {
  T values[N];
  for (int i = 0; i < N; ++i) values[i] = T(i);
  return load<N>(values);
}

/// Product of the lower 32 bits of each 64-bit lane (the compilers do not find the instruction by themselves).
TESSERA_INLINE Vec<uint64_t, kLanes<uint64_t>> multiply_low32(Vec<uint64_t, kLanes<uint64_t>> a,
                                                              Vec<uint64_t, kLanes<uint64_t>> b) {
  using V = Vec<uint64_t, kLanes<uint64_t>>;
#if defined(__AVX512F__)
  return (V)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (V)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (V)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  constexpr uint64_t kLow = 0xffffffffu;
  return (a & kLow) * (b & kLow);
#endif
}

/// What exp and expm1 share: k = x / ln 2 to the nearest integer, and (e^r - 1 - r) / r^2 for the rest r, by Cephes'
/// degree-5 polynomial. Adding 1.5 * 2^23 rounds, and leaves k in the low bits of `shifted`.
struct ReducedExp {
  float r, p;
  uint32_t shifted;
};
TESSERA_INLINE ReducedExp reduced_exp(float x) {
  const float shifted = x * 1.44269504f + 12582912.0f, k = shifted - 12582912.0f;
  const float r = x - k * 0.693359375f + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {r, p, __builtin_bit_cast(uint32_t, shifted)};
}

/// e^x for float, within 2 ulp; 0 below -87.33 (no subnormal results), inf above 88.72, NaN for NaN. Branch-free, so that
/// loops over it vectorise. k is added to the exponent of e^r, which between the bounds stays one of a normal number.
TESSERA_INLINE float exp(float x) {
  const ReducedExp e = reduced_exp(x);
  const float of_r = e.p * e.r * e.r + e.r + 1.0f;
  const float y = __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, of_r) + (e.shifted << 23));
  const float above = x < -87.3365f ? 0.0f : y;
  return x <= 88.7228f ? above : x + __builtin_inff();
}

/// ln x for float, within 2 ulp, subnormals included; -inf for 0, NaN below 0. Cephes' polynomial on [sqrt(1/2), sqrt(2)).
TESSERA_INLINE float log(float x) {
  const bool tiny = x < 0x1p-126f;
  const int32_t bits = __builtin_bit_cast(int32_t, tiny ? x * 0x1p24f : x);
  int32_t e = (bits >> 23) - (tiny ? 150 : 126);
  float m = __builtin_bit_cast(float, (bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  const bool low = m < 0.70710678f;
  e -= low ? 1 : 0;
  m = (low ? m + m : m) - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float k = float(e);
  const float y = k * 0.693359375f + (m + (p * m * z - 0.5f * z - k * 2.12194440e-4f));
  const float below = x == 0.0f ? -__builtin_inff() : __builtin_nanf(""), finite = x < __builtin_inff() ? y : x;
  return x > 0.0f ? finite : below;
}

/// ln(1 + x) for x >= -1, within 3 ulp: the rounding of 1 + x is undone (Kahan).
TESSERA_INLINE float log1p(float x) {
  const float u = 1.0f + x, d = u - 1.0f, y = log(u) * (x / d);
  const float finite = u < __builtin_inff() ? y : u;
  return d == 0.0f ? x : finite;
}

/// e^x - 1, within 4 ulp: 2^k (e^r - 1) + (2^k - 1), by half of 2^k, since k may be 128.
TESSERA_INLINE float expm1(float x) {
  const ReducedExp e = reduced_exp(x);
  const float of_r = e.p * e.r * e.r + e.r, half = __builtin_bit_cast(float, (e.shifted << 23) + 0x3f000000u);
  const float y = 2.0f * (of_r * half + (half - 0.5f));
  const float above = x < -20.0f ? -1.0f : y, finite = x == 0.0f ? x : above;
  return x <= 88.7228f ? finite : x + __builtin_inff();
}

/// tanh x within 3 ulp: an odd polynomial up to 0.625 (near-minimax), 1 - 2 / (e^2x + 1) beyond.
TESSERA_INLINE float tanh(float x) {
  const float z = x * x, t = __builtin_fabsf(x);
  float p = -6.09671418e-3f;
  p = p * z + 2.09971797e-2f;
  p = p * z - 5.38509078e-2f;
  p = p * z + 1.33327693e-1f;
  p = p * z - 3.33333284e-1f;
  const float large = 1.0f - 2.0f / (exp(t + t) + 1.0f);
  return t < 0.625f ? p * z * x + x : __builtin_copysignf(large, x);
}

/// 1 / (1 + e^-x) within 3 ulp for x > -87.
TESSERA_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

/// The error function within 3 ulp: x + x P(x^2) below 1, 1 - e^Q(|x|) up to 4, 1 beyond (both near-minimax).
TESSERA_INLINE float erf(float x) {
  const float z = x * x, t = __builtin_fabsf(x), c = t < 4.0f ? t : 4.0f;
  float p = 7.87587487e-5f;
  p = p * z - 8.01686430e-4f;
  p = p * z + 5.18908724e-3f;
  p = p * z - 2.68542115e-2f;
  p = p * z + 1.12835944e-1f;
  p = p * z - 3.76126260e-1f;
  p = p * z + 1.28379166e-1f;
  float q = 1.63993798e-6f;
  q = q * c - 4.61129130e-5f;
  q = q * c + 5.97264443e-4f;
  q = q * c - 4.76171728e-3f;
  q = q * c + 2.64270436e-2f;
  q = q * c - 1.10090196e-1f;
  q = q * c - 6.31815672e-1f;
  q = q * c - 1.13023925f;
  q = q * c + 3.21471016e-4f;
  return x != x ? x : t < 1.0f ? p * x + x : __builtin_copysignf(1.0f - exp(q), x);
}

TESSERA_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
TESSERA_INLINE float abs(float x) { return __builtin_fabsf(x); }
TESSERA_INLINE float pow(float x, float p) { return __builtin_powf(x, p); }

// In double, the C library's, an element at a time: double is for checks, not for speed.
TESSERA_INLINE double exp(double x) { return __builtin_exp(x); }
TESSERA_INLINE double log(double x) { return __builtin_log(x); }
TESSERA_INLINE double log1p(double x) { return __builtin_log1p(x); }
TESSERA_INLINE double expm1(double x) { return __builtin_expm1(x); }
TESSERA_INLINE double tanh(double x) { return __builtin_tanh(x); }
TESSERA_INLINE double sigmoid(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }
TESSERA_INLINE double erf(double x) { return __builtin_erf(x); }
TESSERA_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
TESSERA_INLINE double abs(double x) { return __builtin_fabs(x); }
TESSERA_INLINE double pow(double x, double p) { return __builtin_pow(x, p); }

}  // namespace TESSERA_TARGET_ISA
}  // namespace simd
}  // namespace tessera
