#pragma once

#include <optional>
#include <utility>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/random.h"
#include "tessera/layers/pool/select.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct PoolOptions {
  double ratio = 0.5;                 ///< of each graph's nodes that stay, as `select_top` counts them
  std::optional<double> min_score{};  ///< in place of ratio: softmax scores above it stay, as in `select_above`
  double multiplier = 1;              ///< of the rows that stay, beside their scores
};

/// What a pooling leaves of a batch of graphs.
struct Pooled {
  Tensor x;           ///< (K, C)
  Graph graph;        ///< of the K nodes that stay, with the edges between them
  Tensor edge_id;     ///< i64 (E'): the id that each edge had
  SegmentPlan nodes;  ///< the graph of each node
  Tensor perm;        ///< i64 (K): the node that each was, graph by graph
  Tensor score;       ///< (K): what its row was multiplied with
};

/// The steps that poolings by score share. raw (N): the score of each node before its activation; it is divided by
/// |scale_by| and goes through tanh, or with min_score through a softmax over each graph. Gradients: x and raw.
Pooled pool_by_score(const Tensor& x, const Tensor& raw, const Tensor& scale_by, const Graph& graph,
                     const SegmentPlan& nodes, const PoolOptions& options);

/// Top-k pooling (Gao and Ji, arXiv 1905.05178; Cangea et al., arXiv 1811.01287): score = tanh(x p / |p|); each graph keeps
/// its best nodes, and x' = x[perm] * score[perm] * multiplier. State: torch_geometric.nn.TopKPooling's, `select.weight` (1,
/// C). Errors: InvalidArgument for shapes; nodes of a graph that are not consecutive.
struct TopKPooling {
  struct Select {
    Tensor weight;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("weight", self.weight);
    }
  };
  Select select;
  PoolOptions options;

  TopKPooling() = default;
  TopKPooling(int64_t channels, Generator& generator, PoolOptions options = {});

  Pooled operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("select", self.select);
  }
};

/// Self-attention graph pooling (Lee, Lee and Kang, arXiv 1904.08082): as TopKPooling, scored by a convolution that sees the
/// graph: s = gnn(x, graph), score = tanh(s w / |w|) with a learned w of one element, as PyG 2.4 and later; a state of
/// earlier versions has no w: leave `select.weight` undefined (`SagPooling(gnn, options)`), and the score is tanh(s).
/// Gnn: `Tensor operator()(const Tensor& x, const Graph& graph)`, (N, C) to (N, 1).
/// State: torch_geometric.nn.SAGPooling's: `gnn.*`, `select.weight` (1, 1).
template <class Gnn>
struct SagPooling {
  Gnn gnn;
  TopKPooling::Select select;
  PoolOptions options;

  SagPooling() = default;
  explicit SagPooling(Gnn scorer, PoolOptions given = {}) : gnn(std::move(scorer)), options(given) {}
  SagPooling(Gnn scorer, Generator& generator, PoolOptions given = {})
      : gnn(std::move(scorer)), select(TopKPooling(1, generator).select), options(given) {}

  Pooled operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes) const {
    const Tensor s = gnn(x, graph);
    check(s.ndim() == 2 && s.dim(1) == 1, "sag_pooling: gnn gives shape {} but needs to give [{}, 1]", s.shape(), x.dim(0));
    const Tensor flat = reshape(s, Shape{s.dim(0)});
    return pool_by_score(x, select.weight.defined() ? mul(flat, reshape(select.weight, Shape{1})) : flat, select.weight,
                         graph, nodes, options);
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("gnn", self.gnn);
    visitor("select", self.select);
  }
};

}  // namespace tessera
