#pragma once

#include <vector>

#include "tessera/core/once.h"
#include "tessera/sparse/graph.h"
#include "tessera/sparse/relational_graph.h"

/// What is behind a RelationalGraph handle, for files of this room.
namespace tessera {

/// Some neighbouring relations of one side. A pair is a relation and a node of this side that has edges of it; pairs come by
/// relation, then node. So many relations are taken together that pairs are about as many as nodes: buffers of a row for
/// each pair stay within O(N F).
struct RelationBlock {
  int64_t relation_begin, relation_end;
  Graph graph;     // rows: pairs; columns: nodes of the other side; edge ids: positions
  Tensor node;     // i32 (pairs)
  Tensor offsets;  // i64 (relations + 1): pairs of each relation
  Tensor divisor;  // i32 (edges), by position: edges that a mean of this edge's relation and destination counts; or, on the
                   // side of destinations, undefined: the length of its row
};

struct RelationSide {
  std::vector<RelationBlock> blocks;
};

struct RelationalState {
  int64_t num_src = 0, num_dst = 0, num_relations = 0;
  Graph edges;     // by destination
  Tensor type;     // i32 (E), by edge id
  Tensor divisor;  // i32 (E), by edge id
  RelationSide by_dst;
  Once<std::shared_ptr<const RelationSide>> by_src;

  static const RelationalState& of(const RelationalGraph& graph) { return *graph.state_; }
  /// Pairs of a relation and a destination, or a source.
  static const RelationSide& side(const RelationalGraph& graph, bool destinations);
};

}  // namespace tessera
