#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"

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

/// The same of a batch as it is, without padding or adjacency matrices: what `dense_diff_pool` gives of `to_dense_batch` and
/// `to_dense_adj`, up to rounding. x (N, C), s (N, K), edge_weight (E) by edge id, undefined: 1 each; nodes: the graph of
/// each node (`GraphBatch::nodes`). Results for G graphs: x (G, K, C), adj (G, K, K); losses as if all were padded to the
/// largest. |A - S S^T|^2 is taken as |A|^2 - 2 tr(S^T A S) + |S^T S|^2, so a loss below about 1e-3 of |A|_F is lost in
/// rounding, and passes no gradient where the difference is not above 0. Gradients: x, s, edge_weight. Memory: N K and G K
/// (C + K) numbers, and the edges'; dense it is G N N with N the largest. Errors: InvalidArgument for shapes, and nodes of a
/// graph that are not consecutive.
DiffPooled diff_pool(const Tensor& x, const Tensor& s, const Graph& graph, const SegmentPlan& nodes,
                     const Tensor& edge_weight = {}, bool normalize = true);

}  // namespace tessera
