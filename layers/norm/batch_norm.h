#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

struct BatchNormConfig {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;               ///< learn weight and bias
  bool track_running_stats = true;  ///< evaluation uses the moments gathered in training
};

/// Batch normalisation (Ioffe and Szegedy, 2015) over the rows of x (N, C), or over all but dimension 1 of (N, C, ..).
/// Formula, gradients, and the error for a single value a channel in training: `batch_norm`.
/// State and initial values are torch.nn.BatchNorm1d's: `weight`, `bias`, `running_mean`, `running_var` (C),
/// `num_batches_tracked` (i64, no dimensions). The running moments are part of the state but no parameters.
struct BatchNorm1d {
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  BatchNormConfig config;
  bool training = true;

  BatchNorm1d() = default;
  explicit BatchNorm1d(int64_t channels, BatchNormConfig config = {});

  Tensor operator()(const Tensor& x) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("bias", self.bias);
    visitor("running_mean", self.running_mean);
    visitor("running_var", self.running_var);
    visitor("num_batches_tracked", self.num_batches_tracked);
  }
};

/// The same under torch_geometric.nn.BatchNorm's names: `module.weight`, ...
struct BatchNorm {
  BatchNorm1d module;

  BatchNorm() = default;
  explicit BatchNorm(int64_t channels, BatchNormConfig config = {}) : module(channels, config) {}

  Tensor operator()(const Tensor& x) const { return module(x); }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("module", self.module);
  }
};

}  // namespace tessera
