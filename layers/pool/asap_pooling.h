#pragma once

#include <type_traits>
#include <utility>

#include "tessera/layers/conv/le_conv.h"
#include "tessera/layers/pool/top_k_pooling.h"
#include "tessera/sparse/normalise.h"

namespace tessera {

struct AsapOptions {
  double ratio = 0.5;           ///< of each graph's clusters that stay, as `select_top` counts them
  double dropout = 0;           ///< of the attention within a cluster, in training
  double negative_slope = 0.2;  ///< of its leaky_relu
  bool add_self_loops = false;  ///< the coarse graph gets one for each cluster; false: it has none
};

/// What an assignment of nodes to clusters leaves of a batch of graphs.
struct Coarsened {
  Tensor x;            ///< (K, C)
  Graph graph;         ///< of the K clusters; edges in the order of their source, then destination
  Tensor edge_weight;  ///< (E'); undefined when the pooling was called without weights
  SegmentPlan nodes;   ///< the graph of each cluster
  Tensor perm;         ///< i64 (K): the node that each cluster lies around, graph by graph
};

/// In place of a network within clusters.
struct NoGnn {
  template <class Self, class Visitor>
  static void visit(Self&, Visitor&&) {}
};

/// What AsapPooling does behind its network: x_pool (N, C) is what clusters attend to, `looped` the graph with a loop at
/// every node, and its weights if there are any; dropout takes a stream from `generator`, and is left out without one.
Coarsened pool_by_clusters(const Tensor& x, const Tensor& x_pool, const LoopedGraph& looped, const SegmentPlan& nodes,
                           const Linear& lin, const Linear& att, const LeConv& gnn_score, const Tensor& select,
                           const AsapOptions& options, Generator* generator);

/// Adaptive structure aware pooling (Ranjan, Sanyal and Talukdar, arXiv 1911.07979). Every node is the middle of a cluster,
/// which has the nodes that edges to it come from, and itself (loops that are missing are added):
///
///     h = gnn_intra_cluster(x), or x without a network;  m[d] = lin(max over the cluster's nodes s of h[s])
///     S[s, d] = softmax over the cluster's nodes s of leaky_relu(att(m[d] | h[s])),  with dropout in training
///     x'[d] = sum over s of S[s, d] x[s];  f = sigmoid(gnn_score(x'))
///
/// Each graph keeps the clusters of its best f, in falling order (rising, when select.weight is negative: PyG's); their rows
/// are f[perm] * x'[perm], and edges are S^T A S of the kept columns, A[s, d] being the sum of the weights from s to d.
/// x (N, C), edge_weight (E), by edge id; undefined: 1 each, and the coarse edges have none either.
/// Gradients: x, edge_weight, every parameter but `select.weight`; also through the coarse edges' weights, where PyG's
/// sparse products fail to differentiate. Ties of the maximum as `spmm`. State and initial values are
/// torch_geometric.nn.ASAPooling's: `lin.*` (C, C), `att.*` (1, 2 C), `gnn_score.*`, `gnn_intra_cluster.*`, `select.weight`
/// (1, 1). Gnn: a convolution (N, C) to (N, C), called `gnn(x, graph, edge_weight)`. Memory: N and E rows of one number for
/// scores, and the entries of A S; no E x C buffer. Errors: InvalidArgument for shapes; nodes of a graph that are not
/// consecutive; dropout in training without a generator.
template <class Gnn = NoGnn>
struct AsapPooling {
  Linear lin, att;
  LeConv gnn_score;
  Gnn gnn_intra_cluster;
  TopKPooling::Select select;
  AsapOptions options;
  bool training = true;

  AsapPooling() = default;
  AsapPooling(int64_t channels, Generator& generator, AsapOptions given = {})
      : AsapPooling(channels, {}, generator, given) {}
  AsapPooling(int64_t channels, Gnn gnn, Generator& generator, AsapOptions given = {})
      : lin(channels, channels, generator),
        att(2 * channels, 1, generator),
        gnn_score(channels, 1, generator),
        gnn_intra_cluster(std::move(gnn)),
        select(TopKPooling(1, generator).select),
        options(given) {}

  Coarsened operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, const Tensor& edge_weight = {}) const {
    check(!training || options.dropout == 0, "asap_pooling: dropout {} in training needs a generator", options.dropout);
    return run(x, graph, nodes, edge_weight, nullptr);
  }
  Coarsened operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, Generator& generator,
                       const Tensor& edge_weight = {}) const {
    return run(x, graph, nodes, edge_weight, training ? &generator : nullptr);
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin", self.lin);
    visitor("att", self.att);
    visitor("gnn_score", self.gnn_score);
    visitor("gnn_intra_cluster", self.gnn_intra_cluster);
    visitor("select", self.select);
  }

 private:
  Coarsened run(const Tensor& x, const Graph& graph, const SegmentPlan& nodes, const Tensor& edge_weight,
                Generator* generator) const {
    check(x.ndim() == 2 && x.dim(0) == graph.num_src() && x.dim(0) == nodes.num_rows(),
          "asap_pooling: x has shape {} but the graph has {} nodes and nodes has {} rows", x.shape(), graph.num_src(),
          nodes.num_rows());
    const LoopedGraph looped = edge_weight.defined() ? add_remaining_self_loops(graph, edge_weight) : with_self_loops(graph);
    Tensor x_pool = x;
    if constexpr (!std::is_same_v<Gnn, NoGnn>) x_pool = gnn_intra_cluster(x, looped.graph, looped.weight);
    return pool_by_clusters(x, x_pool, looped, nodes, lin, att, gnn_score, select.weight, options, generator);
  }
};

}  // namespace tessera
