#pragma once

#include "tessera/core/random.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct Gcn2ConvOptions {
  double alpha = 0.1;          ///< share of the initial features
  double theta = 0;            ///< with `layer` 1 or more: beta = ln(theta / layer + 1); without, beta = 1
  int layer = 0;               ///< of the model, counted from 1
  bool shared_weights = true;  ///< false: a second matrix for the initial features
  bool add_self_loops = true;
  bool normalize = true;  ///< by 1 / sqrt(degree) on both sides; false: the graph and its weights as they are
};

/// GCNII (Chen et al., arXiv 2007.02133), with A = D^-1/2 (A + I) D^-1/2 as in `GcnConv`:
///
///     h = (1 - alpha) A x + alpha x_0,  out = (1 - beta) h + beta h weight1
///     or  p = (1 - alpha) A x, q = alpha x_0,  out = (1 - beta) (p + q) + beta (p weight1 + q weight2)
///
/// x and x_0 (N, channels), out the same; edge_weight (E), by edge id. A row of A without edges is 0. Gradients: x, x_0,
/// edge_weight and the weights. State and initial values are torch_geometric.nn.GCN2Conv's: `weight1`, and unless shared
/// `weight2` (channels, channels), by glorot.
/// Errors: InvalidArgument for shapes and options; those of gcn_norm.
struct Gcn2Conv {
  Tensor weight1, weight2;
  Gcn2ConvOptions options;

  Gcn2Conv() = default;
  Gcn2Conv(int64_t channels, Generator& generator, Gcn2ConvOptions options = {});

  Tensor operator()(const Tensor& x, const Tensor& x_0, const Graph& graph, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight1", self.weight1);
    visitor("weight2", self.weight2);
  }
};

}  // namespace tessera
