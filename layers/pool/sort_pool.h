#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// A fixed number of nodes from each graph (Zhang et al., AAAI 2018): its k nodes that are largest in the last channel, in
/// falling order, side by side; zeros where it has fewer.
/// x (N, C), f32 or f64; nodes: the graph of each node (`GraphBatch::nodes`); out (G, k C). Of equal values the lower node
/// is first; NaN counts as largest. Gradient: x, at the rows taken; none passes through the order. Errors: InvalidArgument
/// for shapes, C = 0, k below 1, nodes of a graph that are not consecutive. Source: torch_geometric.nn.SortAggregation.
Tensor sort_pool(const Tensor& x, const SegmentPlan& nodes, int64_t k);

}  // namespace tessera
