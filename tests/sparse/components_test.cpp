#include "tessera/sparse/components.h"

#include <gtest/gtest.h>

#include "tessera/sparse/subgraph.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Components, DirectionsDoNotMatterAndLowerNodesComeFirst) {
  // 4 -> 1, 1 -> 6, 5 -> 2, 2 -> 5, 3 -> 3; 0 alone
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({4, 1, 5, 2, 3, 1, 6, 2, 5, 3}, {2, 5}), 7);
  const Components components = connected_components(graph);
  EXPECT_EQ(components.count, 4);
  EXPECT_EQ(components.id.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3, 1, 2, 1}));
  EXPECT_EQ(largest_component(graph).to_vector<int32_t>(), (std::vector<int32_t>{1, 4, 6}));
  EXPECT_EQ(induced_subgraph(graph, largest_component(graph)).graph.num_edges(), 2);
}

TEST(Components, OfEquallyLargeOnesTheLowest) {
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({3, 1, 0, 2}, {2, 2}), 4);
  EXPECT_EQ(largest_component(graph).to_vector<int32_t>(), (std::vector<int32_t>{0, 3}));
}

/// Against the labels that spread along edges until nothing changes.
TEST(Components, EqualSpreadingLabels) {
  for (const int64_t edges : {0, 10, 40, 200}) {
    const int64_t n = 60;
    const TwoSided random = random_two_sided(n, n, edges, uint64_t(edges) + 1);
    std::vector<int32_t> label(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) label[size_t(i)] = int32_t(i);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t e = 0; e < random.src.size(); ++e) {
        int32_t &a = label[size_t(random.src[e])], &b = label[size_t(random.dst[e])];
        changed = changed || a != b;
        a = b = std::min(a, b);
      }
    }
    const auto list = [](const std::vector<int32_t>& ids) { return Tensor::from(ids, Shape{int64_t(ids.size())}); };
    const Components components = connected_components(Graph::from_coo(list(random.src), list(random.dst), n, n));
    const int32_t* id = components.id.data<int32_t>();
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) EXPECT_EQ(id[i] == id[j], label[size_t(i)] == label[size_t(j)]);
  }
}

TEST(Components, NothingAndErrors) {
  const Graph none = Graph::from_edge_index(Tensor::empty({2, 0}, DType::i64), 0);
  EXPECT_EQ(connected_components(none).count, 0);
  EXPECT_EQ(largest_component(none).numel(), 0);
  verify_errors(
      {{[] { connected_components(Graph::from_coo(Tensor::empty({0}, DType::i32), Tensor::empty({0}, DType::i32), 1, 2)); },
        "InvalidArgument: connected_components: the graph needs to be square"}});
}

}  // namespace
}  // namespace tessera::test
