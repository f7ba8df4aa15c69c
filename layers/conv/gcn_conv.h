#pragma once

#include "tessera/layers/linear.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct GcnConvOptions {
  bool add_self_loops = true;  ///< existing loops keep their weight, missing ones get 1
  bool normalize = true;       ///< by 1 / sqrt(degree) on both sides; false: the graph and its weights as they are
  bool bias = true;
};

/// Graph convolution (Kipf and Welling, 2017): D^-1/2 (A + I) D^-1/2 X W^T + b, with D the weighted in-degrees of A + I.
/// x (N, in) dense or sparse, out (N, out); edge_weight (E), by edge id. Gradients: x, weight, bias, edge_weight.
/// State and initial values are torch_geometric.nn.GCNConv's: `lin.weight` (out, in) by glorot, `bias` (out) zeros.
/// The narrower side is aggregated: (A X) W^T when in < out, A (X W^T) otherwise; the same up to rounding.
/// Errors: InvalidArgument for shapes; a negative degree, naming node and degree.
struct GcnConv {
  Linear lin;
  Tensor bias;
  GcnConvOptions options;

  GcnConv() = default;
  GcnConv(int64_t in, int64_t out, Generator& generator, GcnConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("bias", self.bias);
    visitor("lin", self.lin);
  }
};

}  // namespace tessera
