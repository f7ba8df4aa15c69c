#pragma once

#include <string>

#include "tessera/core/module.h"

namespace tessera::apps {

/// The tensors with arrays of their own.
StateDict copies_of(const StateDict& state);

/// SHA-256 over names, shapes and bytes of weights: equal when and only when they are bit-identical.
std::string digest_of(const StateDict& weights);

/// No number of the tensor is NaN or infinite. Integers never are; f32 else.
bool all_finite(const Tensor& x);

}  // namespace tessera::apps
