#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// The one list of graphs and widths that tests and benches go through, so that every kernel meets every awkward shape.
namespace tessera::test {

/// Edge e goes from src[e] to dst[e], in no particular order; ids are in [0, num_nodes).
struct EdgeList {
  std::string name;
  int64_t num_nodes = 0;
  std::vector<int32_t> src, dst;
  int64_t num_edges() const { return int64_t(src.size()); }
};

/// empty, one_node, no_edges, empty_ends (first and last rows empty), self_loops, duplicates, path, star, hub (a row of
/// 8200 edges: two whole pieces of 4096 and a rest), rmat.
const std::vector<EdgeList>& graphs();

/// The one named `name`.
const EdgeList& graph(const std::string& name);

/// Scale-free random edges by recursive quadrants (Chakrabarti et al., SDM 2004) with probabilities .57 .19 .19 .05.
EdgeList rmat(int log2_nodes, int64_t num_edges, uint64_t seed);

/// Below, at and above the lanes and register blocks of every instruction set.
inline constexpr std::array<int64_t, 6> kWidths = {1, 3, 8, 17, 64, 129};

}  // namespace tessera::test
