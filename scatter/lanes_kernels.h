#pragma once

#include <cstdint>

#include "tessera/core/simd.h"

/// One lane or a vector of them under the same names, with 16-bit elements as floats: for CPU kernels that reduce rows.
namespace tessera {
namespace {

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

/// Lets `next` from place `here` take over where it beats the best. With AVX-512 by masks: the compilers move them through
/// vectors and back.
template <class V, class P>
TESSERA_INLINE void take(V next, P here, V& best, P& place) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64 && __is_same(P, simd::Vec<int32_t, 16>)) {
    const __mmask16 known = _mm512_cmp_ps_mask((__m512)best, (__m512)best, _CMP_ORD_Q);
    const __mmask16 wins = _mm512_mask_cmp_ps_mask(known, (__m512)next, (__m512)best, _CMP_NLE_UQ);
    best = (V)_mm512_mask_mov_ps((__m512)best, wins, (__m512)next);
    place = (P)_mm512_mask_mov_epi32((__m512i)place, wins, (__m512i)here);
    return;
  } else if constexpr (sizeof(V) == 64) {
    const __mmask8 known = _mm512_cmp_pd_mask((__m512d)best, (__m512d)best, _CMP_ORD_Q);
    const __mmask8 wins = _mm512_mask_cmp_pd_mask(known, (__m512d)next, (__m512d)best, _CMP_NLE_UQ);
    best = (V)_mm512_mask_mov_pd((__m512d)best, wins, (__m512d)next);
    place = (P)_mm512_mask_mov_epi64((__m512i)place, wins, (__m512i)here);
    return;
  }
#endif
  const auto wins = beats(next, best);
  best = wins ? next : best;
  place = wins ? here : place;
}

}  // namespace
}  // namespace tessera
