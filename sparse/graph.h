#pragma once

#include <memory>

#include "tessera/core/tensor.h"

namespace tessera {

struct GraphState;

/// A directed graph, or a bipartite one, in compressed sparse rows: row d lists the sources of the edges that end at
/// destination d, so that aggregation pulls and one thread owns a row. An immutable handle; copies share the arrays and
/// what is computed from them once on demand (transpose, degrees), which is safe from several threads.
///
/// Edges have ids: their position in the caller's list. Arrays of edge values (weights, gradients of them) are always in
/// that order, whatever the order of the rows.
class Graph {
 public:
  Graph() = default;

  /// From an edge list: edge e goes from src[e] to dst[e]. src, dst: i32 or i64 (E). Stable: a row keeps the input order.
  /// Errors: InvalidArgument naming the first id outside [0, num_src) or [0, num_dst), its position and the range;
  /// unequal lengths; more than 2^31 - 1 nodes on a side.
  static Graph from_coo(const Tensor& src, const Tensor& dst, int64_t num_src, int64_t num_dst);
  /// A square graph: num_src = num_dst = num_nodes. edge_index: i32 or i64 (2, E), row 0 sources, row 1 destinations (PyG).
  static Graph from_edge_index(const Tensor& edge_index, int64_t num_nodes);
  /// From rows: rowptr i64 (num_dst + 1), col i32 or i64 (E); edge ids are positions in col.
  /// Errors: InvalidArgument for a rowptr that does not start at 0, falls, or ends elsewhere than at E; ids as above.
  static Graph from_csr(const Tensor& rowptr, const Tensor& col, int64_t num_src);

  bool defined() const { return state_ != nullptr; }
  int64_t num_src() const;
  int64_t num_dst() const;
  int64_t num_edges() const;

  /// i64 (num_dst + 1).
  const Tensor& rowptr() const;
  /// Sources, row by row: i32 (E).
  const Tensor& col() const;
  /// Edge id of each entry of col: i64 (E); undefined when it is the entry's own position.
  const Tensor& edge_id() const;

  /// The same edges reversed, with the same edge ids; a row keeps the order of the edges' positions in this graph's col.
  /// Made once and kept with this graph; the transpose's transpose is this graph again.
  Graph transpose() const;

  /// Edges that end at each destination: i32 (num_dst). Cached.
  const Tensor& in_degree() const;

  /// Whether both are handles of one graph.
  bool is(const Graph& other) const { return state_ == other.state_; }

 private:
  friend struct GraphState;
  explicit Graph(std::shared_ptr<GraphState> state) : state_(std::move(state)) {}
  std::shared_ptr<GraphState> state_;
};

}  // namespace tessera
