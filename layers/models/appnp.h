#pragma once

#include "tessera/layers/conv/appnp.h"
#include "tessera/layers/linear.h"

namespace tessera {

struct AppnpModelOptions {
  int64_t in = 0;
  int64_t hidden = 64;
  int64_t out = 0;
  double dropout = 0.5;  ///< on the input of both matrices
  AppnpOptions propagation = {};
};

/// Predict, then propagate (Gasteiger, Bojchevski and Guennemann, arXiv 1810.05997): appnp(lin2(relu(lin1(x)))). State
/// names and initial values are those of PyG's benchmark/citation/appnp.py: `lin1.weight`, `lin1.bias`, `lin2.*`.
struct Appnp {
  Linear lin1, lin2;
  AppnpModelOptions options;
  bool training = true;

  Appnp() = default;
  /// Errors: InvalidArgument for a size below 1, dropout outside [0, 1], and what `appnp` refuses.
  Appnp(const AppnpModelOptions& options, Generator& generator);

  /// Logits (N, out) of x (N, in), dense or sparse. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {}) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin1", self.lin1);
    visitor("lin2", self.lin2);
  }
};

}  // namespace tessera
