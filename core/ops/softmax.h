#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Softmax along dimension `dim`: exp(x - m) / sum exp(x - m), m being the line's own maximum. f32 or f64, bf16 and
/// f16 as storage (computed in f32, rounded once). A line of no elements gives nothing; one that holds NaN or +inf, or
/// nothing but -inf, gives NaN, as in PyTorch; -inf beside other elements gives 0. Gradient: y (grad - sum grad y).
/// Errors: InvalidArgument "softmax: dimension 2 does not exist in shape [4, 3]"; Unsupported for other dtypes.
Tensor softmax(const Tensor& x, int dim = -1);

/// Its logarithm, x - m - ln sum exp(x - m). Gradient: grad - e^y sum grad.
Tensor log_softmax(const Tensor& x, int dim = -1);

}  // namespace tessera
