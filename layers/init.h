#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"

/// Initial values of parameters, after PyG (torch_geometric/nn/inits.py, nn/dense/linear.py). Each takes one stream of the
/// generator and returns a leaf that requires a gradient.
namespace tessera {

/// Uniform in +-sqrt(6 / (fan_in + fan_out)) of the last two dimensions.
Tensor glorot(const Shape& shape, Generator& generator);
/// Uniform in +-1 / sqrt(fan_in): PyTorch's and PyG's default for linear weights (Kaiming with a = sqrt 5) and biases.
Tensor uniform_fan_in(const Shape& shape, int64_t fan_in, Generator& generator);
/// Zeros.
Tensor zero_parameter(const Shape& shape);
/// Ones.
Tensor one_parameter(const Shape& shape);

}  // namespace tessera
