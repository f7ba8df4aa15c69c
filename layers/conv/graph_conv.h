#pragma once

#include "tessera/layers/linear.h"
#include "tessera/scatter/reduce.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct GraphConvOptions {
  Reduce aggregate = Reduce::sum;  ///< sum, mean, max or min
  bool bias = true;
};

/// The 1-dimensional Weisfeiler-Leman convolution (Morris et al., arXiv 1810.02244):
///
///     out[d] = lin_rel(reduce over edges e = (s -> d) of edge_weight[e] * x[s]) + lin_root(x[d])
///
/// x (N, in), out (N, out); edge_weight (E), by edge id, undefined for 1; a node without edges aggregates to 0.
/// Gradients: x, edge_weight and every parameter.
/// State and initial values are torch_geometric.nn.GraphConv's: `lin_rel.weight` (out, in), `lin_rel.bias`,
/// `lin_root.weight`. Sum and mean aggregate on the narrower side of lin_rel. Errors: InvalidArgument for shapes.
struct GraphConv {
  Linear lin_rel, lin_root;
  GraphConvOptions options;

  GraphConv() = default;
  GraphConv(int64_t in, int64_t out, Generator& generator, GraphConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin_rel", self.lin_rel);
    visitor("lin_root", self.lin_root);
  }
};

}  // namespace tessera
