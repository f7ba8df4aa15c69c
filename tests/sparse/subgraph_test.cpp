#include "tessera/sparse/subgraph.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera {
namespace {

using namespace test;

std::vector<int64_t> list(const Tensor& ids) { return {ids.span<int64_t>().begin(), ids.span<int64_t>().end()}; }

TEST(Subgraph, KeepsTheEdgesBetweenItsNodesInTheirOrder) {
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 3, 2, 3, 1, 3, 2, 0, 3, 2, 0, 3}, {2, 6}), 5);
  const Subgraph sub = induced_subgraph(graph, Tensor::from<int64_t>({3, 2}, {2}));
  EXPECT_EQ(list(sub.edge_id), (std::vector<int64_t>{2, 3, 5}));  // 2 -> 3, 3 -> 2, 3 -> 3
  EXPECT_EQ(list(edge_index_of(sub.graph)), (std::vector<int64_t>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(induced_subgraph(graph, Tensor::from<int32_t>({4}, {1})).graph.num_edges(), 0);
  EXPECT_EQ(induced_subgraph(graph, Tensor::empty({0}, DType::i64)).graph.num_dst(), 0);
  verify_errors({
      {[&] { induced_subgraph(graph, Tensor::from<int64_t>({1, 5}, {2})); },
       "InvalidArgument: induced_subgraph: nodes[1] is 5 but needs to be in [0, 5)"},
      {[&] { induced_subgraph(graph, Tensor::from<int64_t>({1, 2, 1}, {3})); },
       "InvalidArgument: induced_subgraph: nodes holds 1 twice, at positions 0 and 2"},
      {[&] { induced_subgraph(graph, ones({2})); },
       "InvalidArgument: induced_subgraph: nodes has dtype f32 but needs i32 or i64"},
  });
}

}  // namespace
}  // namespace tessera
