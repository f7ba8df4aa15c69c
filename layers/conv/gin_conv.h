#pragma once

#include <utility>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/unary.h"
#include "tessera/core/random.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

struct GinConvOptions {
  double eps = 0;          ///< initial
  bool train_eps = false;  ///< eps is a parameter; else it stays what it is, but is still part of the state
};

/// Graph isomorphism convolution (Xu et al., arXiv 1810.00826):
///
///     out[d] = nn((1 + eps) * x[d] + sum over edges s -> d of x[s])
///
/// Nn: a module with `Tensor operator()(const Tensor& x)`, of any width; x (N, in). Gradients: x, eps when trained, and
/// what nn has. State is torch_geometric.nn.GINConv's: `eps` (1), `nn.*`.
template <class Nn>
struct GinConv {
  Nn nn;
  Tensor eps;

  GinConv() = default;
  explicit GinConv(Nn inner, GinConvOptions options = {}) : nn(std::move(inner)), eps(full(Shape{1}, options.eps)) {
    if (options.train_eps) eps.set_requires_grad();
  }

  Tensor operator()(const Tensor& x, const Graph& graph) const {
    const bool plain = !eps.requires_grad() && eps.item() == 0;  // GIN-0, the usual one: x without a copy
    return nn(add(plain ? x : mul(x, shift(eps, 1)), spmm(graph, x)));
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("eps", self.eps);
    visitor("nn", self.nn);
  }
};

}  // namespace tessera
