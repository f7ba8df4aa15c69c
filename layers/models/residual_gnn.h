#pragma once

#include <vector>

#include "tessera/layers/linear.h"
#include "tessera/layers/norm/node_norm.h"

namespace tessera {

struct ResidualGnnOptions {
  enum class Aggregate : uint8_t {
    gcn,   ///< D^-1/2 (A + I) D^-1/2 x, as `GcnConv`
    sage,  ///< x beside the mean of its neighbours
  };
  int64_t in = 0;
  int64_t hidden = 512;
  int64_t out = 0;
  int layers = 5;
  Aggregate aggregate = Aggregate::gcn;
  double dropout = 0.2;  ///< after every matrix but the last
};

/// Two matrices with dropout and GELU: linear_2(gelu(dropout(linear_1(x)))), dropout.
struct FeedForward {
  Linear linear_1, linear_2;

  Tensor operator()(const Tensor& x, double dropout, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("linear_1", self.linear_1);
    visitor("linear_2", self.linear_2);
  }
};

/// The deep models of Platonov et al., "A critical look at the evaluation of GNNs under heterophily" (ICLR 2023): a matrix,
/// then layers x + feed_forward(aggregate(layer_norm(x))), a layer norm and a matrix. Names of the state and initial values
/// are those of its repository: `input_linear.*`, `residual_modules.<i>.normalization.*`,
/// `residual_modules.<i>.module.feed_forward_module.linear_<1, 2>.*`, `output_normalization.*`, `output_linear.*`
/// (github.com/yandex-research/heterophilous-graphs). There a set of two classes has one output, here one for each class;
/// degrees are those of the edges that come in.
struct ResidualGnn {
  struct Module {
    FeedForward feed_forward_module;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("feed_forward_module", self.feed_forward_module);
    }
  };
  struct Layer {
    NodeNorm normalization;
    Module module;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("normalization", self.normalization);
      visitor("module", self.module);
    }
  };
  Linear input_linear, output_linear;
  std::vector<Layer> residual_modules;
  NodeNorm output_normalization;
  ResidualGnnOptions options;
  bool training = true;

  ResidualGnn() = default;
  /// Errors: InvalidArgument for a size or a layer count below 1, or dropout outside [0, 1].
  ResidualGnn(const ResidualGnnOptions& options, Generator& generator);

  /// Logits (N, out) of x (N, in), dense or sparse. Dropout in training takes its streams from `generator`.
  Tensor operator()(const Tensor& x, const Graph& graph, Generator& generator) const;
  Tensor operator()(const SparseMatrix& x, const Graph& graph, Generator& generator) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("input_linear", self.input_linear);
    visitor("residual_modules", self.residual_modules);
    visitor("output_normalization", self.output_normalization);
    visitor("output_linear", self.output_linear);
  }
};

}  // namespace tessera
