#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/layers/linear.h"
#include "tessera/sparse/graph.h"

namespace tessera {

enum class PnaAggregator : uint8_t { sum, mean, min, max, var, std };

/// With deg the number of edges that end at the node, and avg_lin, avg_log the means of deg and ln(deg + 1) over the
/// training set:
enum class PnaScaler : uint8_t {
  identity,
  amplification,   ///< ln(deg + 1) / avg_log
  attenuation,     ///< avg_log / ln(max(deg, 1) + 1)
  linear,          ///< deg / avg_lin
  inverse_linear,  ///< avg_lin / max(deg, 1)
};

struct PnaConvOptions {
  std::vector<PnaAggregator> aggregators = {PnaAggregator::mean, PnaAggregator::min, PnaAggregator::max, PnaAggregator::std};
  std::vector<PnaScaler> scalers = {PnaScaler::identity, PnaScaler::amplification, PnaScaler::attenuation};
  int64_t edge_dim = 0;  ///< columns of edge features; 0: none
  int64_t towers = 1;
  int pre_layers = 1;                 ///< of the network that makes messages
  int post_layers = 1;                ///< of the one that takes what was aggregated
  bool divide_input = false;          ///< each tower sees its share of the columns in place of all
  Activation act = Activation::relu;  ///< between the layers of both
  bool train_norm = false;            ///< avg_lin and avg_log are parameters
};

/// How many nodes have each number of incoming edges: i64 (largest + 1), zeros (1) without nodes. `PnaConv` takes that of
/// the training set, of one graph or of several.
Tensor degree_histogram(std::span<const Graph> graphs);
Tensor degree_histogram(const Graph& graph);

/// Linear layers with activations between, under the names of a torch.nn.Sequential: `0.weight`, `2.weight`, ...
struct PnaNetwork {
  std::vector<Linear> lins;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    for (size_t i = 0; i < self.lins.size(); ++i) visitor(std::to_string(2 * i).c_str(), self.lins[i]);
  }
};

/// Principal neighbourhood aggregation (Corso et al., arXiv 2004.05718), for each tower t on its columns of x:
///
///     h[e] = pre_nns[t]([x[d], x[s], edge_encoder(edge_attr[e])])                  for e = (s -> d)
///     m[d] = each aggregator of h over the edges that end at d, each scaler of all of them
///     out[d] = lin([towers' post_nns[t]([x[d], m[d]])])
///
/// var is mean(h^2) - mean(h)^2; std its root, 0 where var is 1e-5 or less (there without a gradient).
/// x (N, in), out (N, out); edge_attr (E, edge_dim), by edge id: needed if and only if the layer has edge_dim. For a node
/// without edges m is 0. Gradients: x, edge_attr and every parameter; ties of max and min: the lowest edge id.
/// The first layer of pre_nns goes through x and the edges apart, one product for each node in place of each edge; with
/// pre_layers = 1 and no edge features nothing else is left to do on edges, and there is no E x F buffer.
/// State and initial values are torch_geometric.nn.PNAConv's: `aggr_module.avg_deg_lin`, `aggr_module.avg_deg_log` (1),
/// `edge_encoder.*`, `pre_nns.<t>.<0, 2, ..>.*`, `post_nns.<t>.<0, 2, ..>.*`, `lin.*`.
/// Errors: InvalidArgument for shapes and options.
struct PnaConv {
  Tensor avg_deg_lin, avg_deg_log;
  Linear edge_encoder;
  std::vector<PnaNetwork> pre_nns, post_nns;
  Linear lin;
  PnaConvOptions options;

  PnaConv() = default;
  /// degrees: the `degree_histogram` of the training set.
  PnaConv(int64_t in, int64_t out, const Tensor& degrees, Generator& generator, PnaConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("aggr_module.avg_deg_lin", self.avg_deg_lin);
    visitor("aggr_module.avg_deg_log", self.avg_deg_log);
    visitor("edge_encoder", self.edge_encoder);
    visitor("pre_nns", self.pre_nns);
    visitor("post_nns", self.post_nns);
    visitor("lin", self.lin);
  }
};

}  // namespace tessera
