#pragma once

#include <utility>

#include "tessera/core/ops/arrange.h"
#include "tessera/layers/conv/message_passing.h"

namespace tessera {

struct EdgeConvOptions {
  Reduce aggregate = Reduce::max;  ///< max, min, mean or sum
};

/// Edge convolution (Wang et al., arXiv 1801.07829):
///
///     out[d] = reduce over edges s -> d of nn([x[d], x[s] - x[d]])
///
/// Nn: a module with `Tensor operator()(const Tensor& x)` from (E, 2 in); x (N, in), out (N, nn's width). A node without
/// edges gives 0. Gradients: x and what nn has; among equal messages the lowest edge id wins and gets the whole gradient.
/// nn runs on a row for each edge, so there are E x F buffers. State is torch_geometric.nn.EdgeConv's: `nn.*`.
/// Errors: InvalidArgument for shapes.
template <class Nn>
struct EdgeConv {
  Nn nn;
  EdgeConvOptions options;

  EdgeConv() = default;
  explicit EdgeConv(Nn inner, EdgeConvOptions given = {}) : nn(std::move(inner)), options(given) {}

  Tensor operator()(const Tensor& x, const Graph& graph) const { return (*this)(x, x, graph); }
  /// Bipartite: x_src (num_src, in) sends, x_dst (num_dst, in) receives.
  Tensor operator()(const Tensor& x_src, const Tensor& x_dst, const Graph& graph) const {
    return pass_messages(
        EdgeRows(graph, x_src, x_dst, {}),
        [&](const EdgeRows& e) {
          return nn(concat({e.x_i(), e.difference()}, 1));
        },
        options.aggregate);
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("nn", self.nn);
  }
};

}  // namespace tessera
