#pragma once

#include <vector>

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/layers/linear.h"
#include "tessera/layers/norm/node_norm.h"

namespace tessera {

struct MlpOptions {
  double dropout = 0;  ///< after every layer but the last, in training
  Activation act = Activation::relu;
  bool act_first = false;  ///< before the norm in place of after it
  NodeNorm::Kind norm = NodeNorm::Kind::batch;
  bool plain_last = true;  ///< false: norm, act and dropout follow the last layer, too
  bool bias = true;
};

/// Multi-layer perceptron: linear layers from channels[i] to channels[i + 1] with norm, activation and dropout between.
/// x (N, channels.front()), out (N, channels.back()). Gradients: x and every parameter.
/// State and initial values are torch_geometric.nn.MLP's: `lins.<i>.weight`, `lins.<i>.bias`, `norms.<i>.*`.
/// Errors: InvalidArgument for fewer than two channels, a channel count below 1, dropout outside [0, 1], and in training
/// with dropout without a generator; those of Linear and of the norm.
struct Mlp {
  std::vector<Linear> lins;
  std::vector<NodeNorm> norms;
  MlpOptions options;
  bool training = true;

  Mlp() = default;
  Mlp(const std::vector<int64_t>& channels, Generator& generator, MlpOptions options = {});

  Tensor operator()(const Tensor& x) const;
  /// nodes: the graph of each row, for norms that go by graph. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, Generator& generator, const SegmentPlan& nodes = {}) const;

  /// The rest, of x through the first matrix without its bias: for who multiplies by it elsewhere.
  Tensor after_first_product(const Tensor& product) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lins", self.lins);
    visitor("norms", self.norms);
  }
};

}  // namespace tessera
