#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"

namespace tessera {

/// Inverted dropout: each element is zeroed with probability p, the others are divided by 1 - p. Takes one stream of
/// `generator`; element i's draw depends on (seed, stream, i) alone. f32 or f64, any shape. p = 0 returns x; p = 1 zeros.
/// Gradient: grad under the same mask, drawn again: no mask is stored.
/// Errors: InvalidArgument for p outside [0, 1].
Tensor dropout(const Tensor& x, double p, Generator& generator);

}  // namespace tessera
