#pragma once

#include <vector>

#include "tessera/layers/conv/gcn_conv.h"
#include "tessera/layers/models/between_layers.h"

namespace tessera {

/// Graph convolutional network (Kipf and Welling, 2017): layers of GcnConv with ReLU and dropout between them, the last
/// bare. State names and initial values are torch_geometric.nn.models.GCN's: `convs.<i>.lin.weight`, `convs.<i>.bias`, and
/// those of `BetweenLayers`.
struct Gcn {
  std::vector<GcnConv> convs;
  BetweenLayers between;
  GnnOptions options;
  bool training = true;

  Gcn() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1, or dropout outside [0, 1].
  Gcn(const GnnOptions& options, Generator& generator, const GcnConvOptions& conv = {});

  /// Logits (N, out) of x (N, in), dense or sparse. edge_weight (E) or undefined; nodes: the graph of each node, for norms
  /// that go by graph. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {},
                    const SegmentPlan& nodes = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {},
                    const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("convs", self.convs);
    visitor("norms", self.between.norms);
    visitor("jk", self.between.jk);
    visitor("lin", self.between.lin);
  }
};

}  // namespace tessera
