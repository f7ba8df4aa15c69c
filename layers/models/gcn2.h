#pragma once

#include <vector>

#include "tessera/layers/conv/gcn2_conv.h"
#include "tessera/layers/linear.h"

namespace tessera {

struct Gcn2Options {
  int64_t in = 0;
  int64_t hidden = 64;
  int64_t out = 0;
  int layers = 64;
  double alpha = 0.1;
  double theta = 0.5;
  bool shared_weights = true;
  double dropout = 0.6;  ///< on the input of every matrix and layer
};

/// GCNII (Chen et al., arXiv 2007.02133): x_0 = relu(lins.0(x)), then layers of Gcn2Conv with ReLU after each, then lins.1.
/// State names and initial values are those of PyG's examples/gcn2_cora.py: `lins.<0, 1>.weight`, `lins.<0, 1>.bias`,
/// `convs.<i>.weight1`, unless shared `convs.<i>.weight2`.
struct Gcn2 {
  std::vector<Linear> lins;
  std::vector<Gcn2Conv> convs;
  Gcn2Options options;
  bool training = true;

  Gcn2() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1, dropout outside [0, 1], and what Gcn2Conv refuses.
  Gcn2(const Gcn2Options& options, Generator& generator);

  /// Logits (N, out) of x (N, in), dense or sparse; edge_weight (E) or undefined. Dropout in training takes its streams from
  /// `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lins", self.lins);
    visitor("convs", self.convs);
  }
};

}  // namespace tessera
