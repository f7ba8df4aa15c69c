#pragma once

#include <cstdint>
#include <vector>

#include "tessera/sparse/graph.h"

/// For sparse/reorder.cpp.
namespace tessera {

/// Nodes (of a square graph) whose edges run to and from each other, and how many edges each has.
struct Neighbours {
  Graph in;                     ///< the graph
  Graph out;                    ///< its transpose, or undefined where in-edges alone tell (each edge has its reverse)
  std::vector<int64_t> degree;  ///< edges at each node, of those two graphs
};
Neighbours neighbours_of(const Graph& graph);

/// Nodes by falling weight, equal ones by id.
std::vector<int32_t> by_falling(const std::vector<int64_t>& weight);

/// Nodes lined up community by community. Algorithm: community.cpp.
std::vector<int32_t> community_order(const Neighbours& neighbours);

}  // namespace tessera
