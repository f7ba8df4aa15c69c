#pragma once

#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct Subgraph {
  Graph graph;     ///< node i of it is node nodes[i] of the graph that it was taken from
  Tensor edge_id;  ///< i64 (E'): the edge id there, of each edge; ascending
};

/// The chosen nodes of a square graph and the edges between them. Edges keep their order.
/// nodes: i32 or i64 (K), in the order that they are to have. Time and memory: O(N + E) of the whole graph, 8 bytes an edge.
/// Errors: InvalidArgument for an id outside [0, N), naming the first and its position; for one that occurs twice, naming
/// both positions; unless the graph is square.
Subgraph induced_subgraph(const Graph& graph, const Tensor& nodes);

}  // namespace tessera
