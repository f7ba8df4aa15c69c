#pragma once

#include "tessera/layers/conv/gat_conv.h"

namespace tessera {

struct Gatv2ConvOptions {
  int64_t heads = 1;
  bool concat = true;                     ///< heads side by side; false: their mean
  double negative_slope = 0.2;            ///< of leaky_relu
  double dropout = 0;                     ///< of the attention weights, in training
  bool add_self_loops = true;             ///< one for each node, in place of those that are there
  int64_t edge_dim = 0;                   ///< columns of edge features; 0: none
  std::optional<double> fill_value = {};  ///< features of added loops; without one the mean of a node's incoming ones
  bool bias = true;                       ///< of lin_l, lin_r and the layer
  bool share_weights = false;             ///< lin_r is lin_l
  bool residual = false;                  ///< adds x W_res^T
};

/// GATv2 (Brody et al., arXiv 2105.14491), with H heads of `out` channels, l = lin_l(x), r = lin_r(x):
///
///     score[e, k] = att[k] . leaky_relu(l[s, k] + r[d, k] + (W_e edge[e])[k])
///     out[d, k] = sum over e = (s -> d) of dropout(softmax_d(score))[e, k] l[s, k],  then concat or mean, residual, bias
///
/// x (N, in), out (N, H out), or (N, out) for the mean; edge_attr (E, edge_dim), by edge id. A node without edges (no loops
/// added) gives the bias. Gradients: x, edge_attr and all parameters.
/// State and initial values are torch_geometric.nn.GATv2Conv's: `lin_l`, `lin_r` (weight by glorot, bias uniform by fan-in),
/// `lin_edge.weight`, `res.weight`, `att` (1, H, out) by glorot, `bias` zeros. A state dict of shared weights has both
/// names, as there; the tensors are the same.
/// Runs on `gatv2_attention`; with edge features W_e edge (E, H out) is made, as there.
/// Errors: InvalidArgument for shapes and options, edge features without edge_dim, and in training with dropout without a
/// generator.
struct Gatv2Conv {
  Linear lin_l, lin_r, lin_edge, res;
  Tensor att, bias;
  Gatv2ConvOptions options;
  bool training = true;

  Gatv2Conv() = default;
  Gatv2Conv(int64_t in, int64_t out, Generator& generator, Gatv2ConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;
  /// Dropout in training takes a stream of `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr = {}) const;

  /// The weights, without dropout or gradients.
  AttentionWeights attention_weights(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("att", self.att);
    visitor("bias", self.bias);
    visitor("lin_l", self.lin_l);
    visitor("lin_r", self.lin_r);
    visitor("lin_edge", self.lin_edge);
    visitor("res", self.res);
  }
};

}  // namespace tessera
