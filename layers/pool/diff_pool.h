#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

struct DiffPooled {
  Tensor x;             ///< (B, K, C)
  Tensor adj;           ///< (B, K, K)
  Tensor link_loss;     ///< []: how far clusters are from being what edges join
  Tensor entropy_loss;  ///< []: how far nodes are from being of one cluster
};

/// Differentiable pooling (Ying et al., arXiv 1806.08804): with S = softmax(s) over clusters, masked rows zero,
///
///     x' = S^T x,  adj' = S^T adj S,  link_loss = |adj - S S^T|_F / (B N N),
///     entropy_loss = mean over B and N of sum over clusters of -S log(S + 1e-15)
///
/// x (B, N, C), adj (B, N, N), s (B, N, K) before the softmax, mask (B, N) of 0 and 1, undefined: all nodes count.
/// f32 or f64. The mean counts masked rows, and so does the link loss's divisor, which `normalize` = false leaves out.
/// Gradients: x, adj, s. Memory: 2 B N N and B N K beyond the arguments.
/// Errors: InvalidArgument for shapes. Source: torch_geometric.nn.dense_diff_pool.
DiffPooled dense_diff_pool(const Tensor& x, const Tensor& adj, const Tensor& s, const Tensor& mask = {},
                           bool normalize = true);

}  // namespace tessera
