#pragma once

#include <optional>
#include <vector>

#include "tessera/layers/conv/gcn_conv.h"
#include "tessera/layers/conv/graph_conv.h"
#include "tessera/layers/jumping_knowledge.h"
#include "tessera/layers/pool/top_k_pooling.h"

namespace tessera {

struct PoolingNetOptions {
  int64_t in = 0;
  int64_t hidden = 32;
  int64_t out = 0;  ///< classes, or values
  int layers = 3;
  double ratio = 0.8;                                 ///< of each pooling, as `select_top` counts it
  std::optional<double> min_score = {};               ///< in place of ratio, as `select_above`
  double dropout = 0.5;                               ///< between the two linear layers at the end
  Tensor (*out_activation)(const Tensor&) = nullptr;  ///< of the result, such as `sigmoid`; none: logits
};

/// Convolutions with poolings between them, read out after every convolution: the SAGPool model of PathAI's tissue graphs
/// (pytorch.org/blog, "PathAI uses PyTorch to improve patient outcomes") and of PyG's benchmark/kernel sag_pool.py and
/// top_k.py:
///
///     x = relu(conv1(x));  r_1 = mean over each graph's nodes
///     for convolution i = 0 .. layers - 2:  x = relu(convs[i](x));  r_(i + 2) = mean;
///         pool by pools[i / 2] when i is even and i < layers - 2
///     out_activation(lin2(dropout(relu(lin1(r_1 | ... | r_layers)))))
///
/// so a net of one or two layers does not pool, and with an even count of layers the last pooling is never reached: it is
/// part of the state, and its gradient is zero. Convolutions are GraphConvs with mean.
/// State names and order of initial draws are theirs: `conv1.*`, `convs.<i>.*`, `pools.<i>.*` (layers / 2), `lin1.*`,
/// `lin2.*`. Pool: SagPooling<GraphConv> or TopKPooling.
template <class Pool>
struct PoolingNet {
  GraphConv conv1;
  std::vector<GraphConv> convs;
  std::vector<Pool> pools;
  JumpingKnowledge jump{JumpingKnowledge::Mode::cat};
  Linear lin1, lin2;
  PoolingNetOptions options;
  bool training = true;

  PoolingNet() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1.
  PoolingNet(const PoolingNetOptions& options, Generator& generator);

  /// (G, out) of x (N, in); nodes: the graph of each node (`GraphBatch::nodes`). A graph without nodes reads out as zeros.
  /// Dropout in training takes its stream from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv1", self.conv1);
    visitor("convs", self.convs);
    visitor("pools", self.pools);
    visitor("jump", self.jump);
    visitor("lin1", self.lin1);
    visitor("lin2", self.lin2);
  }
};

using SagPoolNet = PoolingNet<SagPooling<GraphConv>>;
using TopKNet = PoolingNet<TopKPooling>;

extern template struct PoolingNet<SagPooling<GraphConv>>;
extern template struct PoolingNet<TopKPooling>;

struct SagPaperNetOptions {
  int64_t in = 0;
  int64_t hidden = 128;
  int64_t out = 0;  ///< classes
  double ratio = 0.5;
  double dropout = 0.5;  ///< between the first two linear layers at the end
};

/// The hierarchical net of the SAGPool paper (Lee, Lee and Kang, arXiv 1904.08082): three times GcnConv, ReLU and a
/// SagPooling scored by a GcnConv, after each a readout max | mean over each graph's nodes; their sum goes through Linear,
/// ReLU, dropout, Linear, ReLU, Linear of 2 hidden, hidden, hidden / 2 and out channels.
/// State names are the authors' (inyeoplee77/SAGPool networks.py), within the poolings PyG's: `conv1.*`, `pool1.gnn.*`,
/// `pool1.select.weight`, .., `lin1.*`, `lin2.*`, `lin3.*`.
struct SagPoolHierarchicalNet {
  GcnConv conv1, conv2, conv3;
  SagPooling<GcnConv> pool1, pool2, pool3;
  Linear lin1, lin2, lin3;
  SagPaperNetOptions options;
  bool training = true;

  SagPoolHierarchicalNet() = default;
  /// Errors: InvalidArgument for sizes below 1, or hidden below 2.
  SagPoolHierarchicalNet(const SagPaperNetOptions& options, Generator& generator);

  /// Logits (G, out) of x (N, in); the rest as PoolingNet.
  Tensor operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv1", self.conv1);
    visitor("pool1", self.pool1);
    visitor("conv2", self.conv2);
    visitor("pool2", self.pool2);
    visitor("conv3", self.conv3);
    visitor("pool3", self.pool3);
    visitor("lin1", self.lin1);
    visitor("lin2", self.lin2);
    visitor("lin3", self.lin3);
  }
};

/// Its global net: the outputs of three GcnConvs with ReLU, side by side, are pooled once; then readout max | mean and the
/// same three linear layers, of 6 hidden, hidden, hidden / 2 and out channels. State: `conv1.*`, `conv2.*`, `conv3.*`,
/// `pool.*`, `lin1.*`, `lin2.*`, `lin3.*`.
struct SagPoolGlobalNet {
  GcnConv conv1, conv2, conv3;
  SagPooling<GcnConv> pool;
  Linear lin1, lin2, lin3;
  SagPaperNetOptions options;
  bool training = true;

  SagPoolGlobalNet() = default;
  SagPoolGlobalNet(const SagPaperNetOptions& options, Generator& generator);

  Tensor operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv1", self.conv1);
    visitor("conv2", self.conv2);
    visitor("conv3", self.conv3);
    visitor("pool", self.pool);
    visitor("lin1", self.lin1);
    visitor("lin2", self.lin2);
    visitor("lin3", self.lin3);
  }
};

}  // namespace tessera
