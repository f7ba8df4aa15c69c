#pragma once

#include <cstdint>

#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"

namespace tessera {

/// How nodes are lined up so that those that are read together stand together in memory.
enum class Ordering : uint8_t {
  degree,     ///< most edges first: what is read most often shares pages and cache lines
  rcm,        ///< reverse Cuthill-McKee: a small bandwidth; for meshes, roads, molecules, k-nearest neighbours
  community,  ///< communities one after the other, hubs first in each; for social, citation and purchase graphs
};

/// A graph with its nodes renamed, and the way there and back. Edge ids are the original's, so edge values stay valid as
/// they are, and a row keeps its order, so that the same edge wins a tie.
struct Reordered {
  Graph graph;
  Tensor old_id;  ///< i32 (N): the old id of each new node
  Tensor new_id;  ///< i32 (N): the new id of each old node

  /// Rows of node features, labels or masks in the new order: out[new] = rows[old_id[new]]. rows (N, ...), any dtype.
  /// Gradient: rows, by the inverse. Errors: InvalidArgument for another number of rows.
  Tensor permute(const Tensor& rows) const;
  /// Back in the caller's order: out[old] = rows[new_id[old]]. All else as `permute`.
  Tensor restore(const Tensor& rows) const;
  /// New ids of old ones, as of a training split: i32 of the ids' length. ids i32 or i64 (K).
  /// Errors: InvalidArgument naming the first id outside [0, N) and its position.
  Tensor rename(const Tensor& ids) const;
};

/// Renames the nodes of a square graph by an ordering; directed edges count for either end. Nodes without edges come last.
/// Worth it when the rows of features are larger than the cache and the graph is used more often than a few times: a
/// community order costs a few sums over the edges (graph_bench). Deterministic for every thread count.
/// Cost: degree and community O(N + E), rcm O(E + N log N) on one thread. Memory: 12 bytes an edge for the result, 12 more
/// while a directed graph is ordered by rcm or community (its transpose), and O(N).
/// Errors: InvalidArgument for a graph whose sides differ.
/// Sources: Cuthill and McKee, 1969, with the start of George and Liu, 1979; sparse/community.cpp for communities.
Reordered reorder(const Graph& graph, Ordering ordering);

/// Renames by an order that the caller has: old_id i32 or i64 (N), each node once.
/// Errors: InvalidArgument naming the first id that is out of range or was there before.
Reordered reorder(const Graph& graph, const Tensor& old_id);

}  // namespace tessera
