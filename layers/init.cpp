#include "tessera/layers/init.h"

#include <cmath>

#include "tessera/core/ops/create.h"

namespace tessera {
namespace {

Tensor symmetric(const Shape& shape, double bound, Generator& generator) {
  return uniform(shape, -bound, bound, generator).set_requires_grad();
}

}  // namespace

Tensor glorot(const Shape& shape, Generator& generator) {
  check(shape.ndim() >= 2, "glorot: shape {} needs two dimensions or more", shape);
  return symmetric(shape, std::sqrt(6.0 / double(shape[-2] + shape[-1])), generator);
}

Tensor uniform_fan_in(const Shape& shape, int64_t fan_in, Generator& generator) {
  return symmetric(shape, fan_in > 0 ? 1 / std::sqrt(double(fan_in)) : 0, generator);
}

Tensor zero_parameter(const Shape& shape) { return zeros(shape).set_requires_grad(); }

Tensor one_parameter(const Shape& shape) { return ones(shape).set_requires_grad(); }

}  // namespace tessera
