#pragma once

#include "tessera/layers/linear.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct SgConvOptions {
  int hops = 1;
  bool add_self_loops = true;
  bool bias = true;
};

/// Simplified graph convolution (Wu et al., arXiv 1902.07153): A^hops X W^T + b, A = D^-1/2 (A + I) D^-1/2 as in `GcnConv`.
/// x (N, in) dense or sparse, out (N, out); edge_weight (E), by edge id. Gradients: x, edge_weight, weight, bias.
/// Propagation goes on the narrower side; what does not change from call to call is better computed once by `propagate`,
/// before `lin` alone. State and initial values are torch_geometric.nn.SGConv's: `lin.weight` (out, in), `lin.bias`. Errors:
/// InvalidArgument for shapes or fewer than 0 hops; those of gcn_norm.
struct SgConv {
  Linear lin;
  SgConvOptions options;

  SgConv() = default;
  SgConv(int64_t in, int64_t out, Generator& generator, SgConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin", self.lin);
  }
};

/// A^hops x, the part of SgConv without parameters (SGC and SIGN pre-propagation). x (N, F), out the same.
Tensor propagate(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}, const SgConvOptions& options = {});

/// [x, A x, ..., A^hops x] side by side: (N, (hops + 1) F). What SIGN (Frasca et al., arXiv 2004.11198) trains a perceptron
/// on, row by row, without a graph. Errors as `propagate`.
Tensor sign_features(const Tensor& x, const Graph& graph, const Tensor& edge_weight = {}, const SgConvOptions& options = {});

}  // namespace tessera
