#pragma once

#include "tessera/sparse/graph.h"

/// Graphs of points: who is near whom. Exact, without N x N of anything: a k-d tree, O(N log N) for few dimensions.
namespace tessera {

struct NeighbourOptions {
  bool loops = false;  ///< whether a point is its own neighbour
  /// i64 (G + 1): graph g has the points [node_offsets[g], node_offsets[g + 1]), as `GraphBatch` has them; neighbours are of
  /// the same graph. Undefined: all points are of one.
  Tensor node_offsets = {};
};

/// Edges to each point from its k nearest others, nearest first; from all others where there are fewer than k.
/// positions (N, D), f32 or f64; distances are Euclidean, their squares summed in double in the order of the dimensions;
/// of points at one distance the one with the lower index is nearer. Edge ids are places: k in a row.
/// No gradient. Errors: InvalidArgument for a shape that does not fit, k below 0, offsets that do not start at 0, fall or do
/// not end at N, a position that is not finite (naming the first). Source: torch_cluster's knn_graph (pyg.nn.knn_graph).
Graph knn_graph(const Tensor& positions, int64_t k, const NeighbourOptions& options = {});

/// Edges to each point from all that are closer than `radius` (not at it), by index; with `most` >= 0 from the nearest of
/// these, at most so many (PyG takes the first 32 that it meets; here the default is all).
/// Everything else as `knn_graph`. Errors also for a radius that is negative or NaN. Source: torch_cluster's radius_graph.
Graph radius_graph(const Tensor& positions, double radius, int64_t most = -1, const NeighbourOptions& options = {});

/// Euclidean length of each edge, by edge id: (E), in the dtype of positions (N, D), f32 or f64. No gradient.
/// Errors: InvalidArgument unless the graph is square and has N nodes. Source: PyG's transform Distance(norm=False).
Tensor edge_lengths(const Graph& graph, const Tensor& positions);

}  // namespace tessera
