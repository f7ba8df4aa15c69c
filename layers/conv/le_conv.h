#pragma once

#include "tessera/layers/linear.h"
#include "tessera/sparse/graph.h"

namespace tessera {

/// Local extremum convolution (Ranjan et al., arXiv 1911.07979): how much a node differs from its neighbours,
///
///     out[d] = lin3(x[d]) + sum over edges e = (s -> d) of edge_weight[e] * (lin1(x[s]) - lin2(x[d]))
///
/// x (N, in), out (N, out); edge_weight (E), by edge id, undefined for 1; a node without edges gets lin3(x[d]).
/// Gradients: x, edge_weight and every parameter. No E x F buffer: the sum is spmm(lin1(x)) - (sum of weights) * lin2(x).
/// State and initial values are torch_geometric.nn.LEConv's: `lin1.weight` (out, in), `lin1.bias`, `lin2.weight`,
/// `lin3.weight`, `lin3.bias`. Errors: InvalidArgument for shapes.
struct LeConv {
  Linear lin1, lin2, lin3;

  LeConv() = default;
  LeConv(int64_t in, int64_t out, Generator& generator, bool bias = true);

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin1", self.lin1);
    visitor("lin2", self.lin2);
    visitor("lin3", self.lin3);
  }
};

}  // namespace tessera
