#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/random.h"
#include "tessera/sparse/relational_graph.h"
#include "tessera/tests/sparse/two_sided.h"

/// Edge lists with types, for relational graphs.
namespace tessera::test {

struct Relations {
  TwoSided edges;
  std::vector<int32_t> type;
  int64_t relations = 0;

  std::string name() const { return edges.name + " of " + std::to_string(relations) + " relations"; }
  RelationalGraph graph() const {
    const Shape shape{edges.num_edges()};
    return RelationalGraph::from_coo(Tensor::from(edges.src, shape), Tensor::from(edges.dst, shape),
                                     Tensor::from(type, shape), edges.num_src, edges.num_dst, relations);
  }
};

/// Types at random; relation 1 has no edges.
inline Relations with_types(TwoSided edges, int64_t relations, uint64_t seed) {
  Relations out{std::move(edges), {}, relations};
  const Philox random(seed, 7);
  for (int64_t e = 0; e < out.edges.num_edges(); ++e) {
    const int32_t type = int32_t(random(uint64_t(e)).bits[0] % uint64_t(relations));
    out.type.push_back(type == 1 ? 0 : type);
  }
  return out;
}

/// Every graph, with one relation, with few, and with so many that they come in several blocks.
inline std::vector<Relations> relation_graphs() {
  std::vector<Relations> list;
  for (const TwoSided& g : two_sided_graphs())
    for (const int64_t relations : {1, 4, 40}) list.push_back(with_types(g, relations, 3));
  return list;
}

}  // namespace tessera::test
