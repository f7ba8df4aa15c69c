#pragma once

#include <cstdint>

#include "tessera/core/simd.h"

/// One lane or a vector of them under the same names, with 16-bit elements as floats: for the CPU kernels of scatter/ only.
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

}  // namespace
}  // namespace tessera
