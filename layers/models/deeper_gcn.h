#pragma once

#include <optional>
#include <vector>

#include "tessera/layers/conv/deep_gcn_layer.h"
#include "tessera/layers/conv/gen_conv.h"
#include "tessera/layers/norm/node_norm.h"
#include "tessera/scatter/reduce.h"

namespace tessera {

struct DeeperGcnOptions {
  int64_t in = 0;  ///< 0: x has `hidden` columns already (of an encoder of atoms, say) and there is no node_encoder
  int64_t hidden = 64;
  int64_t out = 0;
  int layers = 28;
  int64_t edge_dim = 0;  ///< 0: edge_attr, where given, has `hidden` columns already and there is no edge_encoder
  double dropout = 0.1;
  NodeNorm::Kind norm = NodeNorm::Kind::layer_node;  ///< of each layer
  GenConvOptions conv = {.learn_t = true, .norm = GenConvOptions::Norm::layer};
  std::optional<Reduce> readout = {};  ///< rows of graphs in place of nodes: sum, mean or max over each graph's nodes
};

/// DeeperGCN (Li et al., arXiv 2006.07739): encoders, a first GenConv alone, layers of `DeepGcnLayer` res+ over GenConv, the
/// first layer's norm and ReLU, dropout, and a matrix; for graphs the readout before it. State names and initial values are
/// those of PyG's examples/ogbn_proteins_deepgcn.py: `node_encoder.*`, `edge_encoder.*`, `layers.<i>.conv.*`,
/// `layers.<i>.norm.*`, `lin.*`. Edge features are E x F buffers in every layer (see `GenConv`).
struct DeeperGcn {
  Linear node_encoder, edge_encoder;
  std::vector<DeepGcnLayer<GenConv, NodeNorm>> layers;
  Linear lin;
  DeeperGcnOptions options;
  bool training = true;

  DeeperGcn() = default;
  /// Errors: InvalidArgument for a size or a layer count that is too small, dropout outside [0, 1], a readout other than
  /// sum, mean and max; those of GenConv.
  DeeperGcn(const DeeperGcnOptions& options, Generator& generator);

  /// Logits (N, out) of x (N, in or hidden), or with a readout (G, out), nodes then saying the graph of each node.
  /// edge_attr (E, edge_dim or hidden) or undefined. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr = {},
                    const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("node_encoder", self.node_encoder);
    visitor("edge_encoder", self.edge_encoder);
    visitor("layers", self.layers);
    visitor("lin", self.lin);
  }
};

}  // namespace tessera
