#pragma once

#include <optional>

#include "tessera/layers/linear.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct GatConvOptions {
  int64_t heads = 1;
  bool concat = true;                     ///< heads side by side; false: their mean
  double negative_slope = 0.2;            ///< of leaky_relu
  double dropout = 0;                     ///< of the attention weights, in training
  bool add_self_loops = true;             ///< one for each node, in place of those that are there
  int64_t edge_dim = 0;                   ///< columns of edge features; 0: none
  std::optional<double> fill_value = {};  ///< features of added loops; without one the mean of a node's incoming ones
  bool bias = true;
  bool residual = false;  ///< adds x W_res^T
};

/// What a layer attends to: weights (E', H) by edge id of `graph`, which has the loops that the layer added.
struct AttentionWeights {
  Graph graph;
  Tensor weights;
};

/// Graph attention (Velickovic et al., arXiv 1710.10903), with H heads of `out` channels:
///
///     h = x W^T,  score[e, k] = leaky_relu(att_src[k] . h[s, k] + att_dst[k] . h[d, k] + att_edge[k] . (W_e edge[e])[k])
///     out[d, k] = sum over e = (s -> d) of dropout(softmax_d(score))[e, k] h[s, k],  then concat or mean, residual, bias
///
/// x (N, in) dense or sparse, out (N, H out), or (N, out) for the mean; edge_attr (E, edge_dim), by edge id. A node without
/// edges (no loops added) gives the bias. Gradients: x, edge_attr and all parameters.
/// State and initial values are torch_geometric.nn.GATConv's: `lin.weight` (H out, in), `lin_edge.weight` (H out, edge_dim),
/// `res.weight`, `att_src`, `att_dst`, `att_edge` (1, H, out), all by glorot, `bias` zeros.
/// Runs on `gat_attention`: nothing is stored for an edge; W_e is folded into att_edge, so that edges have H numbers.
/// Unlike there, edge features given to a layer made without edge_dim are an error.
/// Errors: InvalidArgument for shapes and options, and in training with dropout without a generator.
struct GatConv {
  Linear lin, lin_edge, res;
  Tensor att_src, att_dst, att_edge, bias;
  GatConvOptions options;
  bool training = true;

  GatConv() = default;
  GatConv(int64_t in, int64_t out, Generator& generator, GatConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, const Tensor& edge_attr = {}) const;
  /// Dropout in training takes a stream of `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_attr = {}) const;

  /// The weights, without dropout or gradients.
  AttentionWeights attention_weights(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("att_src", self.att_src);
    visitor("att_dst", self.att_dst);
    visitor("att_edge", self.att_edge);
    visitor("bias", self.bias);
    visitor("lin", self.lin);
    visitor("lin_edge", self.lin_edge);
    visitor("res", self.res);
  }
};

}  // namespace tessera
