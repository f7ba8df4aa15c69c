#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

/// Normalisations of node features x (N, C) by graph. `nodes` is the graph of each node (`GraphBatch::nodes`); undefined:
/// all nodes are one graph. A graph without nodes has no rows to normalise. Gradients: x and every parameter, through the
/// moments. f32 or f64. Errors: InvalidArgument when x is not (N, C) or nodes has another number of rows.
/// State names, initial values and formulas are those of torch_geometric.nn's classes of the same names.
namespace tessera {

struct LayerNormOptions {
  enum class Mode : uint8_t {
    graph,  ///< one mean and variance for all nodes and channels of a graph
    node,   ///< one for each row, as torch.nn.LayerNorm
  };
  Mode mode = Mode::graph;
  double eps = 1e-5;
  bool affine = true;
};

/// (x - mean) / sqrt(var + eps) * weight + bias. As in PyG, with mode `graph` and no `nodes` the divisor is
/// sqrt(var) + eps instead, so one graph and a batch of one graph differ in the last digits. State: `weight`, `bias` (C).
struct LayerNorm {
  Tensor weight, bias;
  LayerNormOptions options;

  LayerNorm() = default;
  explicit LayerNorm(int64_t channels, LayerNormOptions options = {});
  Tensor operator()(const Tensor& x, const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("bias", self.bias);
  }
};

/// Cai et al., arXiv 2009.03294: y = x - mean_scale * mean, then weight * y / sqrt(mean of y^2 + eps) + bias, by channel
/// over each graph. State: `weight`, `bias`, `mean_scale` (C).
struct GraphNorm {
  Tensor weight, bias, mean_scale;
  double eps = 1e-5;

  GraphNorm() = default;
  explicit GraphNorm(int64_t channels, double eps = 1e-5);
  Tensor operator()(const Tensor& x, const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("bias", self.bias);
    visitor("mean_scale", self.mean_scale);
  }
};

/// By channel over each graph: (x - mean) / sqrt(biased var + eps) * weight + bias. Without `affine` nothing is learned.
/// State: `weight`, `bias` (C) when affine. (PyG's running moments are not kept: its default.)
struct InstanceNorm {
  Tensor weight, bias;
  double eps = 1e-5;

  InstanceNorm() = default;
  explicit InstanceNorm(int64_t channels, double eps = 1e-5, bool affine = false);
  Tensor operator()(const Tensor& x, const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("bias", self.bias);
  }
};

struct PairNormOptions {
  double scale = 1;
  bool scale_individually = false;  ///< each row by its own length
  double eps = 1e-5;
};

/// Zhao and Akoglu, arXiv 1909.12223: y = x - mean of the graph by channel; then scale * y / sqrt(eps + mean over the
/// graph's rows of |y|^2), or individually scale * y / (eps + |y|). No state.
Tensor pair_norm(const Tensor& x, const SegmentPlan& nodes = {}, const PairNormOptions& options = {});

/// Li et al., arXiv 2006.07739: message / |message| * |x| * scale, row by row; rows shorter than 1e-12 are divided by
/// that. message (N, C'), x (N, C): of x the lengths matter alone. State: `scale` (1), a parameter with `learn_scale`.
struct MessageNorm {
  Tensor scale;

  explicit MessageNorm(bool learn_scale = false);
  Tensor operator()(const Tensor& x, const Tensor& message) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("scale", self.scale);
  }
};

}  // namespace tessera
