#pragma once

#include <string>
#include <vector>

#include "tessera/layers/linear.h"
#include "tessera/layers/norm/batch_norm.h"
#include "tessera/layers/norm/graph_norms.h"

namespace tessera {

struct GenConvOptions {
  enum class Aggregate : uint8_t {
    softmax,
    softmax_sg,  ///< softmax whose weights pass no gradient
    powermean,
    sum,
    mean,
    max,
    min,
  };
  enum class Norm : uint8_t {
    none,
    batch,     ///< torch.nn.BatchNorm1d
    layer,     ///< torch.nn.LayerNorm, of rows
    instance,  ///< torch.nn.InstanceNorm1d, which takes (N, C) for one sequence: rows, nothing learned
  };
  Aggregate aggregate = Aggregate::softmax;
  double t = 1;          ///< of softmax: inverse temperature
  bool learn_t = false;  ///< not with softmax_sg
  double p = 1;          ///< of powermean
  bool learn_p = false;
  bool message_norm = false;  ///< MessageNorm of what was aggregated, against the node's own row
  bool learn_message_scale = false;
  Norm norm = Norm::batch;  ///< between the layers of mlp
  int layers = 2;           ///< of mlp
  int64_t expansion = 2;    ///< width of its hidden layers, in multiples of out
  double eps = 1e-7;        ///< added to each message
  bool bias = false;        ///< of all matrices
  int64_t edge_dim = 0;     ///< columns of edge features; 0: they have `out` columns, if there are any
};

/// Linear, norm and relu, as often as there are layers, the last a Linear alone. State is that of the torch.nn.Sequential
/// in PyG's gen_conv.py: `0.weight`, `1.*` of the norm, `4.weight`, ..., four places to a layer (three without a norm).
struct GenMlp {
  std::vector<Linear> lins;
  std::vector<BatchNorm1d> batch_norms;
  std::vector<LayerNorm> layer_norms;

  GenMlp() = default;
  GenMlp(int64_t channels, Generator& generator, const GenConvOptions& options);

  Tensor operator()(const Tensor& x) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    const bool normed = !self.batch_norms.empty() || !self.layer_norms.empty();
    const size_t places = normed ? 4 : 3;  // Linear, norm, ReLU, Dropout
    for (size_t i = 0; i < self.lins.size(); ++i) {
      visitor(std::to_string(places * i).c_str(), self.lins[i]);
      const std::string norm = std::to_string(places * i + 1);
      if (i < self.batch_norms.size()) visitor(norm.c_str(), self.batch_norms[i]);
      if (i < self.layer_norms.size()) visitor(norm.c_str(), self.layer_norms[i]);
    }
  }
};

/// Generalised graph convolution (Li et al., arXiv 2006.07739):
///
///     message[e] = relu(x[s] + edge_attr[e]) + eps                                     for e = (s -> d)
///     softmax:    m[d] = sum over e of softmax_d(t message)[e] * message[e], column by column
///     powermean:  m[d] = (mean over e of message[e]^p)^(1/p), message and mean clamped to [1e-4, 100] unless p = 1 stays
///     out[d] = mlp(m[d] + x[d])
///
/// x (N, in), out (N, out); edge_attr (E, edge_dim or out), by edge id, or undefined. Where widths differ from `out`,
/// lin_src, lin_edge and lin_dst make them so, and with message_norm m is normed before x[d] is added. For a node without
/// edges m is 0; of a powermean what clamping makes of 0. Gradients: x, edge_attr and every parameter; ties of max and min:
/// the lowest edge id.
/// Without edge_attr messages are made once for each node and all aggregates run on `spmm` (a softmax of scores beyond 60 on
/// `gat_attention`): there is no E x F buffer. With it there are.
/// State and initial values are torch_geometric.nn.GENConv's: `aggr_module.t` or `.p` (1) when learned, `lin_src.weight`,
/// `lin_edge.weight`, `lin_dst.weight` where needed, `mlp.*`, `msg_norm.scale`.
/// Errors: InvalidArgument for shapes and options.
struct GenConv {
  Tensor t, p;  ///< parameters when learned
  Linear lin_src, lin_edge, lin_dst;
  GenMlp mlp;
  MessageNorm msg_norm;  ///< used with message_norm
  GenConvOptions options;

  GenConv() = default;
  GenConv(int64_t in, int64_t out, Generator& generator, GenConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const {
    return (*this)(x, x, graph, edge_attr);
  }
  /// Bipartite: x_src (num_src, in) sends, x_dst (num_dst, in) receives.
  Tensor operator()(const Tensor& x_src, const Tensor& x_dst, const Graph& graph, const Tensor& edge_attr = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("aggr_module.t", self.t);
    visitor("aggr_module.p", self.p);
    visitor("lin_src", self.lin_src);
    visitor("lin_edge", self.lin_edge);
    visitor("lin_dst", self.lin_dst);
    visitor("mlp", self.mlp);
    if (self.options.message_norm) visitor("msg_norm", self.msg_norm);
  }
};

}  // namespace tessera
