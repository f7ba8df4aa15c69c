#include "tessera/sparse/relational_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tessera/sparse/relational_state.h"
#include "tessera/tests/sparse/relations.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

/// The edges of a side as (relation, own node, other node) and how often each comes.
std::map<std::array<int64_t, 3>, int> edges_of(const RelationalGraph& graph, bool destinations) {
  std::map<std::array<int64_t, 3>, int> out;
  const int64_t nodes = destinations ? graph.num_dst() : graph.num_src();
  for (const RelationBlock& block : RelationalState::side(graph, destinations).blocks) {
    const int64_t* offsets = block.offsets.data<int64_t>();
    const int64_t relations = block.relation_end - block.relation_begin;
    EXPECT_TRUE(relations == 1 || block.graph.num_dst() <= nodes);
    EXPECT_EQ(offsets[0], 0);
    EXPECT_EQ(offsets[relations], block.graph.num_dst());
    for (int64_t r = 0; r < relations; ++r)
      for (int64_t p = offsets[r]; p < offsets[r + 1]; ++p) {
        EXPECT_TRUE(p == offsets[r] || block.node.data<int32_t>()[p - 1] < block.node.data<int32_t>()[p]);
        const int64_t* rowptr = block.graph.rowptr().data<int64_t>();
        EXPECT_LT(rowptr[p], rowptr[p + 1]);
        for (int64_t i = rowptr[p]; i < rowptr[p + 1]; ++i)
          ++out[{block.relation_begin + r, block.node.data<int32_t>()[p], block.graph.col().data<int32_t>()[i]}];
      }
  }
  return out;
}

TEST(RelationalGraph, EveryEdgeIsInOnePairOfEitherSide) {
  for (const Relations& list : relation_graphs()) {
    SCOPED_TRACE(list.name());
    const RelationalGraph graph = list.graph();
    std::map<std::array<int64_t, 3>, int> by_dst, by_src;
    for (size_t e = 0; e < list.type.size(); ++e) {
      ++by_dst[{list.type[e], list.edges.dst[e], list.edges.src[e]}];
      ++by_src[{list.type[e], list.edges.src[e], list.edges.dst[e]}];
    }
    EXPECT_EQ(edges_of(graph, true), by_dst);
    EXPECT_EQ(edges_of(graph, false), by_src);
    EXPECT_EQ(graph.num_edges(), list.edges.num_edges());
    EXPECT_EQ(graph.num_relations(), list.relations);
  }
}

TEST(RelationalGraph, Errors) {
  const auto i64 = [](const std::vector<int64_t>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); };
  const auto make = [=](const std::vector<int64_t>& src, const std::vector<int64_t>& dst, const std::vector<int64_t>& type,
                        int64_t relations = 2) {
    return [=] { RelationalGraph::from_coo(i64(src), i64(dst), i64(type), 3, 3, relations); };
  };
  verify_errors({
      {make({0, 3}, {0, 0}, {0, 0}), "InvalidArgument: graph: src[1] is 3 but needs to be in [0, 3)"},
      {make({0, 1}, {0, -1}, {0, 0}), "InvalidArgument: graph: dst[1] is -1 but needs to be in [0, 3)"},
      {make({0, 1}, {0, 0}, {0, 2}), "InvalidArgument: relational_graph: type[1] is 2 but needs to be in [0, 2)"},
      {make({0, 1}, {0, 0}, {0}), "InvalidArgument: relational_graph: type has 1 entries but the graph has 2 edges"},
      {make({0}, {0}, {0}, -1), "InvalidArgument: relational_graph: num_relations is -1 but needs to be in [0, 2147483647]"},
      {[] { RelationalGraph().num_edges(); }, "InvalidArgument: relational_graph: an undefined graph was used"},
  });
}

}  // namespace
}  // namespace tessera::test
