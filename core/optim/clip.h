#pragma once

#include <span>

#include "tessera/core/tensor.h"

namespace tessera {

/// Scales the gradients of `parameters` together so that the length of all of them as one vector is at most `max_norm`,
/// and returns the length they had: sqrt(sum g^2), in double, in a fixed order. Parameters without a gradient are passed
/// over. A length that is not finite leaves every gradient as it is: the caller sees it and can skip the step.
/// Errors: InvalidArgument for max_norm < 0.
double clip_grad_norm(std::span<const Tensor> parameters, double max_norm);

/// Each element of the gradients into [-limit, limit]; NaN stays. Errors: InvalidArgument for limit < 0.
void clip_grad_value(std::span<const Tensor> parameters, double limit);

}  // namespace tessera
