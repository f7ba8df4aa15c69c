#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"

/// A batch of graphs as arrays in which every graph has the same number of nodes, for layers that need products of whole
/// adjacency matrices. B graphs, N nodes each: as many as the largest has, or `max_nodes`; of a graph that has more, the
/// first.
namespace tessera {

struct DenseBatch {
  Tensor x;     ///< (B, N, C), zeros where a graph has no more nodes
  Tensor mask;  ///< (B, N), x's dtype: 1 for nodes, 0 for the others
};

/// Rows x (M, C) of any floating dtype; nodes: the graph of each (`GraphBatch::nodes`), in any order. Gradient: x.
/// Errors: InvalidArgument for shapes; max_nodes below 0; B N of 2^31 or more. Source: PyG's to_dense_batch.
DenseBatch to_dense_batch(const Tensor& x, const SegmentPlan& nodes, int64_t max_nodes = 0);

/// (B, N, N): element [b, i, j] is the sum of the weights of the edges from node i to node j of graph b, edges to and from
/// nodes beyond N left out. edge_weight (E), f32 or f64, by edge id; undefined: 1 each, in f32. Gradient: edge_weight.
/// Errors: InvalidArgument for shapes, an edge between two graphs, naming it. Source: PyG's to_dense_adj.
Tensor to_dense_adj(const Graph& graph, const SegmentPlan& nodes, const Tensor& edge_weight = {}, int64_t max_nodes = 0);

}  // namespace tessera
