#pragma once

#include "tessera/layers/norm/batch_norm.h"
#include "tessera/layers/norm/graph_norms.h"

namespace tessera {

/// One of the normalisations of node features, chosen at run time: what models take as an option. Formulas, gradients,
/// state names (`module.weight` and so on for batch, `weight`, `bias` for the others) and errors are those of the one
/// that was chosen; `none` gives x and has no state.
struct NodeNorm {
  enum class Kind : uint8_t {
    none,
    batch,       ///< BatchNorm
    layer,       ///< LayerNorm of whole graphs, PyG's default
    layer_node,  ///< LayerNorm of rows, as torch.nn.LayerNorm
    graph,       ///< GraphNorm
    instance,    ///< InstanceNorm, nothing learned
    pair,        ///< pair_norm
  };
  Kind kind = Kind::none;
  BatchNorm batch;
  LayerNorm layer;
  GraphNorm graph;

  NodeNorm() = default;
  NodeNorm(Kind kind, int64_t channels);

  /// x (N, C), out the same. nodes: the graph of each node; undefined: one graph.
  Tensor operator()(const Tensor& x, const SegmentPlan& nodes = {}) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    BatchNorm::visit(self.batch, visitor);
    LayerNorm::visit(self.layer, visitor);
    GraphNorm::visit(self.graph, visitor);
  }
};

}  // namespace tessera
