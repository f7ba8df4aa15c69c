#pragma once

#include "tessera/core/tensor.h"

/// Small sums over heads that attention layers share.
namespace tessera {

/// Each head's dot product with its own vector: (N, H) with [n, h] = sum over c of x[n, h C + c] att[0, h, c].
/// x (N, H C), att (1, H, C). Gradients: both. One matrix product with att spread over a (H C, H) matrix, so that neither
/// direction makes an array of x's size beside the gradient.
Tensor head_dots(const Tensor& x, const Tensor& att);

/// att (1, H, C) spread over a matrix (H C, H), head h's vector in rows [h C, (h + 1) C) of column h. Gradient: att.
Tensor head_matrix(const Tensor& att);

/// Mean over heads: (N, C) of x (N, H C). Gradient: x.
Tensor head_mean(const Tensor& x, int64_t heads);

}  // namespace tessera
