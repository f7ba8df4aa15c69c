#pragma once

#include <vector>

#include "tessera/layers/conv/sage_conv.h"
#include "tessera/layers/models/between_layers.h"

namespace tessera {

/// GraphSAGE (Hamilton, Ying and Leskovec, arXiv 1706.02216): layers of SageConv with ReLU and dropout between them, the
/// last bare. State names and initial values are torch_geometric.nn.models.GraphSAGE's: `convs.<i>.lin_l.weight`,
/// `convs.<i>.lin_l.bias`, `convs.<i>.lin_r.weight`, and those of `BetweenLayers`.
struct GraphSage {
  std::vector<SageConv> convs;
  BetweenLayers between;
  GnnOptions options;
  bool training = true;

  GraphSage() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1, or dropout outside [0, 1]; those of SageConv.
  GraphSage(const GnnOptions& options, Generator& generator, const SageConvOptions& conv = {});

  /// Logits (N, out) of x (N, in), dense or sparse. nodes: the graph of each node, for norms that go by graph. Dropout in
  /// training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const SegmentPlan& nodes = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("convs", self.convs);
    visitor("norms", self.between.norms);
    visitor("jk", self.between.jk);
    visitor("lin", self.between.lin);
  }
};

}  // namespace tessera
