#pragma once

#include "tessera/layers/conv/sg_conv.h"

namespace tessera {

struct SgcOptions {
  int64_t in = 0;
  int64_t out = 0;
  int hops = 2;
};

/// Simplified graph convolution (Wu et al., arXiv 1902.07153) as a model: one SgConv. State names and initial values are
/// those of PyG's benchmark/citation/sgc.py: `conv1.lin.weight`, `conv1.lin.bias`.
struct Sgc {
  SgConv conv1;

  Sgc() = default;
  /// Errors: InvalidArgument for a size below 1 or fewer than 0 hops.
  Sgc(const SgcOptions& options, Generator& generator);

  /// Logits (N, out) of x (N, in), dense or sparse. Nothing is drawn: the generator is there as in every model.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv1", self.conv1);
  }
};

}  // namespace tessera
