#pragma once

#include "tessera/layers/conv/gat_conv.h"

namespace tessera {

struct TransformerConvOptions {
  int64_t heads = 1;
  bool concat = true;       ///< heads side by side; false: their mean
  bool beta = false;        ///< a gate between the root's row and what is aggregated; needs root_weight, else ignored
  double dropout = 0;       ///< of the attention weights, in training
  int64_t edge_dim = 0;     ///< columns of edge features; 0: none
  bool bias = true;         ///< of lin_key, lin_query, lin_value and lin_skip
  bool root_weight = true;  ///< adds lin_skip(x)
};

/// Graph transformer (Shi et al., arXiv 2009.03509), with H heads of `out` channels, q, k, v = lin_query, lin_key,
/// lin_value of x and w = W_e edge:
///
///     score[e, h] = q[d, h] . (k[s, h] + w[e, h]) / sqrt(out)
///     m[d, h] = sum over e = (s -> d) of dropout(softmax_d(score))[e, h] (v[s, h] + w[e, h]),  then concat or mean
///     out = m + r, or with beta  b r + (1 - b) m,  r = lin_skip(x),  b = sigmoid(lin_beta([m, r, m - r]))
///
/// x (N, in), out (N, H out), or (N, out) for the mean; edge_attr (E, edge_dim), by edge id: needed if and only if the layer
/// has edge_dim. No loops are added; for a node without edges m is 0. Gradients: x, edge_attr and all parameters.
/// State and initial values are torch_geometric.nn.TransformerConv's: `lin_key`, `lin_query`, `lin_value`, `lin_skip`,
/// `lin_edge.weight`, `lin_beta.weight` (1, 3 columns), all uniform by fan-in; lin_skip is there without root_weight, too.
/// Runs on `dot_attention`; with edge features w (E, H out) is made, as there.
/// Errors: InvalidArgument for shapes and options, and in training with dropout without a generator.
struct TransformerConv {
  Linear lin_key, lin_query, lin_value, lin_edge, lin_skip, lin_beta;
  TransformerConvOptions options;
  bool training = true;

  TransformerConv() = default;
  TransformerConv(int64_t in, int64_t out, Generator& generator, TransformerConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;
  /// Dropout in training takes a stream of `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr = {}) const;

  /// The weights, without dropout or gradients.
  AttentionWeights attention_weights(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin_key", self.lin_key);
    visitor("lin_query", self.lin_query);
    visitor("lin_value", self.lin_value);
    visitor("lin_edge", self.lin_edge);
    visitor("lin_skip", self.lin_skip);
    visitor("lin_beta", self.lin_beta);
  }
};

}  // namespace tessera
