#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Softmax of each row: exp(x[i, j] - max_i) / sum_j exp(x[i, j] - max_i). x (N, C), f32 or f64. Rows are shifted by their own
/// maximum; a row of no elements gives nothing; a row holding NaN gives NaN. Gradient: y (grad - sum_j grad y).
/// Errors: InvalidArgument unless two dimensions.
Tensor softmax(const Tensor& x);

/// Its logarithm: x[i, j] - max_i - ln sum_j exp(x[i, j] - max_i). Gradient: grad - softmax sum_j grad.
Tensor log_softmax(const Tensor& x);

}  // namespace tessera
