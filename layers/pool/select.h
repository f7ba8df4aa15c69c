#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

/// Which nodes a pooling keeps. score (N), f32 or f64, no gradient passes; nodes: the graph of each node.
namespace tessera {

struct Selection {
  Tensor perm;        ///< i64 (K): the nodes that stay, graph by graph
  SegmentPlan nodes;  ///< the graph of each of them; a graph without nodes stays
};

/// The k best of each graph of n nodes, by falling score; of equal scores the lower node first; NaN counts as largest.
/// k = ceil(ratio * n) in float for ratio < 1, at least 1; else min(int(ratio), n): as PyG, so ratio 1.0 keeps one node.
/// Errors: InvalidArgument for shapes; unless ratio > 0.
Selection select_top(const Tensor& score, const SegmentPlan& nodes, double ratio);

/// The nodes whose score is above `min_score`, but at least those within 1e-7 of their graph's largest; ascending. A score
/// of NaN is kept, so that it shows. Errors: InvalidArgument for shapes and a min_score of NaN.
Selection select_above(const Tensor& score, const SegmentPlan& nodes, double min_score);

}  // namespace tessera
