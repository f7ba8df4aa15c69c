#pragma once

#include "tessera/core/ops/create.h"

/// bf16 and f16 are storage: what is computed of them is computed in f32 and rounded once, at the end.
namespace tessera {

constexpr bool is_storage16(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

/// f(x in f32), rounded to x's dtype. A gradient takes the same way back: f32 within f, rounded once for x.
template <class F>
Tensor through_f32(const Tensor& x, F&& f) {
  return cast(f(cast(x, DType::f32)), x.dtype());
}

/// The same of a pair of one dtype.
template <class F>
Tensor through_f32(const Tensor& a, const Tensor& b, F&& f) {
  return cast(f(cast(a, DType::f32), cast(b, DType::f32)), a.dtype());
}

/// `x` in f32 when it is 16-bit storage, else `x`; undefined stays undefined.
inline Tensor widened(const Tensor& x) { return x.defined() && is_storage16(x.dtype()) ? cast(x, DType::f32) : x; }

}  // namespace tessera
