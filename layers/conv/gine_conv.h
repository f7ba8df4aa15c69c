#pragma once

#include <utility>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/layers/conv/gin_conv.h"
#include "tessera/layers/linear.h"

namespace tessera {

/// sum over edges e = (s -> d) of relu(x_src[s] + edge[e]), edge (E, F): (num_dst, F). Two E x F buffers on the way, one of
/// which is kept for the gradients (of x_src and edge; 0 where the sum is 0 or less). Errors: InvalidArgument for shapes.
Tensor gine_sum(const Graph& graph, const Tensor& x_src, const Tensor& edge);

/// Graph isomorphism convolution with edge features (Hu et al., arXiv 1905.12265):
///
///     out[d] = nn((1 + eps) * x[d] + sum over edges e = (s -> d) of relu(x[s] + edge_attr[e]))
///
/// Nn: a module with `Tensor operator()(const Tensor& x)`, of any width; x (N, in); edge_attr (E, in), by edge id, or made
/// with `edge_dim` (E, edge_dim), of which lin makes what is added. Gradients: x, edge_attr, eps when trained, lin's and
/// nn's. State and initial values are torch_geometric.nn.GINEConv's: `eps` (1), `nn.*`, and with edge_dim `lin.weight`
/// (in, edge_dim), `lin.bias`. Errors: InvalidArgument for shapes.
template <class Nn>
struct GineConv {
  Nn nn;
  Tensor eps;
  Linear lin;

  GineConv() = default;
  explicit GineConv(Nn inner, GinConvOptions options = {}) : nn(std::move(inner)), eps(full(Shape{1}, options.eps)) {
    if (options.train_eps) eps.set_requires_grad();
  }
  /// Edge features of edge_dim columns; in: the columns of x.
  GineConv(Nn inner, int64_t in, int64_t edge_dim, Generator& generator, GinConvOptions options = {})
      : GineConv(std::move(inner), options) {
    lin = Linear(edge_dim, in, generator);
  }

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr) const {
    const Tensor edge = lin.weight.defined() ? lin(edge_attr) : edge_attr;
    return nn(add(mul(x, shift(eps, 1)), gine_sum(graph, x, edge)));
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("eps", self.eps);
    visitor("nn", self.nn);
    visitor("lin", self.lin);
  }
};

}  // namespace tessera
