#pragma once

#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct AppnpOptions {
  int hops = 10;
  double alpha = 0.1;  ///< chance to teleport back to the node itself
  bool add_self_loops = true;
};

/// Approximate personalised propagation (Gasteiger, Bojchevski and Guennemann, arXiv 1810.05997): from h_0 = x,
///
///     h_k = (1 - alpha) A h_(k-1) + alpha x,    A = D^-1/2 (A + I) D^-1/2 as in `GcnConv`
///
/// x (N, F), out the same: h_hops. No parameters (torch_geometric.nn.APPNP has none). Gradients: x, edge_weight.
/// Errors: InvalidArgument for shapes, fewer than 0 hops, alpha outside [0, 1]; those of gcn_norm.
Tensor appnp(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}, const AppnpOptions& options = {});

}  // namespace tessera
