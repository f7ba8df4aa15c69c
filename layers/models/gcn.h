#pragma once

#include <vector>

#include "tessera/layers/conv/gcn_conv.h"

namespace tessera {

struct GcnOptions {
  int64_t in = 0;
  int64_t hidden = 16;
  int64_t out = 0;
  int layers = 2;
  double dropout = 0.5;        ///< on the input of every layer but the first
  double input_dropout = 0.0;  ///< on the features
  GcnConvOptions conv = {};
};

/// Graph convolutional network (Kipf and Welling, 2017): layers of GcnConv with ReLU and dropout between them, the last
/// bare. State names and initial values are torch_geometric.nn.models.GCN's: `convs.<i>.lin.weight`, `convs.<i>.bias`.
struct Gcn {
  std::vector<GcnConv> convs;
  GcnOptions options;
  bool training = true;

  Gcn() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1.
  Gcn(const GcnOptions& options, Generator& generator);

  /// Logits (N, out) of x (N, in), dense or sparse. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("convs", self.convs);
  }
};

}  // namespace tessera
