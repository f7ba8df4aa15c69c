#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/layers/jumping_knowledge.h"
#include "tessera/layers/norm/node_norm.h"

namespace tessera {

/// What the outputs of a model's layers become: the last one alone, or jumping knowledge of all of them.
enum class Jump : uint8_t {
  none,  ///< the last layer has the model's outputs, and nothing follows it
  last,  ///< the last layer is as the others, a matrix of outputs follows
  cat,
  max,
  lstm,
};

/// Of models that are layers of one kind: `Gcn`, `GraphSage`, `Gin`. The names are torch_geometric.nn.models.BasicGNN's.
struct GnnOptions {
  int64_t in = 0;
  int64_t hidden = 16;
  int64_t out = 0;
  int layers = 2;
  double dropout = 0.5;        ///< after every layer but the last (with `jump` after that, too)
  double input_dropout = 0.0;  ///< on the features
  Activation act = Activation::relu;
  bool act_first = false;  ///< before the norm in place of after it
  NodeNorm::Kind norm = NodeNorm::Kind::none;
  Jump jump = Jump::none;
};

/// What follows the layers of such a model: after each but the last, with `jump` after the last too, the norm, the
/// activation and dropout; then jumping knowledge and a matrix. Part of the models, whose state has its members beside
/// `convs`: `norms.<i>.*`, `jk.lstm.*`, `jk.att.*`, `lin.weight`, `lin.bias`, as torch_geometric.nn.models.BasicGNN's.
struct BetweenLayers {
  std::vector<NodeNorm> norms;
  JumpingKnowledge jk;
  Linear lin;

  BetweenLayers() = default;
  /// Draws what it needs after the layers, as PyG does. Errors: those of JumpingKnowledge.
  BetweenLayers(const GnnOptions& options, Generator& generator);

  /// layer(i, h): layer i of h, of the features for i = 0 (when h is undefined). Out (N, out).
  Tensor operator()(const GnnOptions& options, bool training, const std::function<Tensor(size_t, const Tensor&)>& layer,
                    Generator& generator, const SegmentPlan& nodes) const;
};

/// Columns that layer i takes and gives.
struct LayerSizes {
  int64_t in, out;
};
/// Errors: InvalidArgument for a size or a layer count below 1, or dropout outside [0, 1]; the text begins with `model`.
std::vector<LayerSizes> layer_sizes(const char* model, const GnnOptions& options);

}  // namespace tessera
