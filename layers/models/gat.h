#pragma once

#include <vector>

#include "tessera/layers/conv/gat_conv.h"

namespace tessera {

struct GatOptions {
  int64_t in = 0;
  int64_t hidden = 8;  ///< channels of each head
  int64_t out = 0;
  int layers = 2;
  int64_t heads = 8;      ///< side by side, of every layer but the last
  int64_t out_heads = 1;  ///< of the last, averaged
  double dropout = 0.6;   ///< on the input of every layer and on the attention weights
};

/// Graph attention network (Velickovic et al., arXiv 1710.10903): layers of GatConv with ELU and dropout between them, the
/// last bare. State names and initial values are those of GATConvs in a list: `convs.<i>.lin.weight` and so on.
struct Gat {
  std::vector<GatConv> convs;
  GatOptions options;
  bool training = true;

  Gat() = default;
  /// Errors: InvalidArgument for a size or a count below 1.
  Gat(const GatOptions& options, Generator& generator);

  /// Logits (N, out) of x (N, in), dense or sparse. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("convs", self.convs);
  }
};

}  // namespace tessera
