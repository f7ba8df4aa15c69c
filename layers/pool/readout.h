#pragma once

#include <utility>

#include "tessera/core/ops/elementwise.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/scatter/segment_softmax.h"

/// One row for each graph of a batch. x (N, C); nodes: the graph of each node (`GraphBatch::nodes`); out (G, C). A graph
/// without nodes gives zeros, wherever it stands. Gradients: x; ties of a maximum as `segment_reduce`.
namespace tessera {

inline Tensor global_sum_pool(const Tensor& x, const SegmentPlan& nodes) { return segment_reduce(x, nodes, Reduce::sum); }
inline Tensor global_mean_pool(const Tensor& x, const SegmentPlan& nodes) { return segment_reduce(x, nodes, Reduce::mean); }
inline Tensor global_max_pool(const Tensor& x, const SegmentPlan& nodes) { return segment_reduce(x, nodes, Reduce::max); }

/// Soft attention (Li et al., arXiv 1511.05493): sum over a graph's nodes of softmax(gate_nn(x)) * nn(x), the softmax over
/// the graph's nodes. gate_nn: (N, C) to (N, 1) or (N, C'); nn: (N, C) to (N, C').
/// State: torch_geometric.nn.AttentionalAggregation's: `gate_nn.*`, `nn.*`.
template <class GateNn, class Nn>
struct AttentionalAggregation {
  GateNn gate_nn;
  Nn nn;

  Tensor operator()(const Tensor& x, const SegmentPlan& nodes) const {
    return global_sum_pool(mul(nn(x), segment_softmax(gate_nn(x), nodes)), nodes);
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("gate_nn", self.gate_nn);
    visitor("nn", self.nn);
  }
};

}  // namespace tessera
