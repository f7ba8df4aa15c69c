#pragma once

#include <span>

#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"

namespace tessera {

/// Several graphs as one, without padding: the nodes of graph g are consecutive, as are its edges' ids, and no edge joins
/// two graphs. Rows of node features (and of edge features) are simply put one after the other, in the same order. A graph
/// without nodes is kept, wherever it stands.
struct GraphBatch {
  Graph graph;
  Tensor edge_offsets;  ///< i64 (G + 1): graph g has the edge ids [edge_offsets[g], edge_offsets[g + 1])
  SegmentPlan nodes;    ///< the graph of each node: for readouts, poolings and norms

  /// Errors: InvalidArgument unless every graph is square; more than 2^31 - 1 nodes in all.
  static GraphBatch from_graphs(std::span<const Graph> graphs);

  int64_t num_graphs() const { return nodes.num_segments(); }
  /// i64 (G + 1): graph g has the nodes [node_offsets[g], node_offsets[g + 1]).
  const Tensor& node_offsets() const { return nodes.offsets(); }
  /// Graph g alone again, with the node numbers and edge ids that it had. Errors: InvalidArgument for g outside [0, G).
  Graph at(int64_t g) const;
};

}  // namespace tessera
