#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"

namespace tessera {

/// Every element `value`, converted to `dtype`.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = Device::cpu);
Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
Tensor ones(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);

/// Independent uniform draws from [low, high), of 24 random bits in f32 and 53 in f64; one stream of `generator`.
/// dtype f32 or f64.
Tensor uniform(const Shape& shape, double low, double high, Generator& generator, DType dtype = DType::f32);
/// Independent standard normal draws (Box-Muller); one stream of `generator`. dtype f32 or f64.
Tensor normal(const Shape& shape, Generator& generator, DType dtype = DType::f32);

/// A copy in memory of its own, without gradient state.
Tensor clone(const Tensor& x);

/// Elements converted to `dtype`, the same tensor when it has that dtype already. Floats to integers: towards zero, beyond
/// the range to its nearest end, NaN to 0. Integers to narrower ones: modulo 2^bits. Floats to narrower ones: the nearest,
/// ties to even, infinity beyond the range.
/// Gradient: converted back. Only between floating dtypes.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace tessera
