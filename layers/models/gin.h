#pragma once

#include <vector>

#include "tessera/layers/conv/gin_conv.h"
#include "tessera/layers/mlp.h"
#include "tessera/layers/models/between_layers.h"

namespace tessera {

/// Graph isomorphism network (Xu et al., arXiv 1810.00826): layers of GinConv, each with a perceptron of two matrices and
/// the model's norm and activation between them; ReLU and dropout between the layers, the last bare. State names and initial
/// values are torch_geometric.nn.models.GIN's: `convs.<i>.eps`, `convs.<i>.nn.lins.<0, 1>.*`, `convs.<i>.nn.norms.0.*`, and
/// those of `BetweenLayers`.
struct Gin {
  std::vector<GinConv<Mlp>> convs;
  BetweenLayers between;
  GnnOptions options;
  bool training = true;

  Gin() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1, or dropout outside [0, 1].
  Gin(const GnnOptions& options, Generator& generator, const GinConvOptions& conv = {});

  /// Logits (N, out) of x (N, in), dense or sparse. nodes: the graph of each node, for norms that go by graph (between the
  /// layers; as in PyG a perceptron's own norm takes all nodes for one graph). Where the first layer is narrower than x its
  /// matrix comes before its sum. Dropout in training takes its streams from `generator`.
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
