#include "tessera/sparse/edge_list.h"

#include <gtest/gtest.h>

#include <map>

#include "tessera/core/ops/create.h"
#include "tessera/scatter/gather.h"
#include "tessera/sparse/graph_batch.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

using Edges = tessera::EdgeList;

template <class T>
Tensor list(const std::vector<T>& values) {
  return Tensor::from(values, Shape{int64_t(values.size())});
}

/// Case H11.
TEST(Coalesce, KeysBeyond32Bits) {
  const Edges edges{list<int32_t>({49999, 0, 49999}), list<int32_t>({49999, 1, 49999}), list<float>({1, 2, 3})};
  const Edges merged = coalesce(edges, 50000);
  EXPECT_EQ(merged.src.to_vector<int32_t>(), (std::vector<int32_t>{0, 49999}));
  EXPECT_EQ(merged.dst.to_vector<int32_t>(), (std::vector<int32_t>{1, 49999}));
  EXPECT_EQ(merged.weight.to_vector<float>(), (std::vector<float>{2, 4}));
  const int64_t nodes = 3037000500;
  const Edges wide{list<int64_t>({nodes - 1, 0}), list<int64_t>({nodes - 1, 1}), Tensor()};
  EXPECT_EQ(error_of([&] { coalesce(wide, nodes); }),
            "InvalidArgument: graph: num_src is 3037000500 but needs to be in [0, 2147483647]");
}

/// Case H63.
TEST(ToUndirected, ParallelEdgesAndLoops) {
  const Edges edges{list<int64_t>({0, 0, 1, 0, 0}), list<int64_t>({1, 1, 0, 0, 0}), list<float>({1, 2, 3, 4, 2})};
  const auto weights = [&](Merge merge) {
    const Edges both = to_undirected(edges, 2, merge);
    EXPECT_EQ(both.src.to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1}));
    EXPECT_EQ(both.dst.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 0}));
    return both.weight.to_vector<float>();
  };
  EXPECT_EQ(weights(Merge::sum), (std::vector<float>{6, 6, 6}));
  EXPECT_EQ(weights(Merge::mean), (std::vector<float>{3, 2, 2}));
  EXPECT_EQ(weights(Merge::max), (std::vector<float>{4, 3, 3}));
  EXPECT_EQ(weights(Merge::min), (std::vector<float>{2, 1, 1}));
  EXPECT_EQ(weights(Merge::first), (std::vector<float>{4, 1, 1}));
}

TEST(Coalesce, EqualsAnOrderedMap) {
  const TwoSided random = random_two_sided(40, 40, 5000, 41);
  const std::vector<double> weights = random_seed(Shape{5000}, DType::f64, 42).to_vector<double>();
  for (const bool undirected : {false, true}) {
    std::map<std::pair<int32_t, int32_t>, double> expected;
    for (size_t e = 0; e < random.src.size(); ++e) {
      expected[{random.src[e], random.dst[e]}] += weights[e];
      if (undirected && random.src[e] != random.dst[e]) expected[{random.dst[e], random.src[e]}] += weights[e];
    }
    const Edges edges{list(random.src), list(random.dst), list(weights)};
    const Edges merged = undirected ? to_undirected(edges, 40) : coalesce(edges, 40);
    ASSERT_EQ(size_t(merged.src.numel()), expected.size());
    int64_t i = 0;
    for (const auto& [pair, weight] : expected) {
      EXPECT_EQ(merged.src.data<int32_t>()[i], pair.first);
      EXPECT_EQ(merged.dst.data<int32_t>()[i], pair.second);
      EXPECT_NEAR(merged.weight.data<double>()[i], weight, 1e-12);
      ++i;
    }
  }
}

/// Case H62: what belongs to edges is what the caller gathers by edge, and nothing else, whatever its size.
TEST(ToUndirected, FeaturesOfEdgesFollowByTheirFirstEdge) {
  const Edges both = to_undirected({list<int64_t>({0}), list<int64_t>({1}), Tensor()}, 2);
  const Tensor features = gather(Tensor::from<float>({1, 2, 3}, {1, 3}), both.first);
  EXPECT_EQ(features.to_vector<float>(), (std::vector<float>{1, 2, 3, 1, 2, 3}));
  const Graph one = Graph::from_coo(both.src, both.dst, 2, 2);
  const Graph graphs[] = {one, one, one};
  const GraphBatch batch = GraphBatch::from_graphs(graphs);
  EXPECT_EQ(batch.graph.num_dst(), 6);
  EXPECT_EQ(batch.graph.num_edges(), 6);
  EXPECT_EQ(batch.num_graphs(), 3);

  const Edges declared = to_undirected({list<int64_t>({2, 0}), list<int64_t>({3, 1}), Tensor()}, 4);
  EXPECT_EQ(declared.src.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(declared.dst.to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 3, 2}));
  EXPECT_EQ(declared.first.to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 0, 0}));
  const Edges merged = coalesce({list<int64_t>({3, 1, 3, 1}), list<int64_t>({0, 1, 0, 1}), Tensor()}, 4);
  EXPECT_EQ(merged.first.to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
}

TEST(RemoveSelfLoops, KeepsTheOthersInTheirOrder) {
  const Edges edges{list<int64_t>({2, 1, 0, 1}), list<int64_t>({0, 1, 2, 1}), list<float>({1, 2, 3, 4})};
  const Edges kept = remove_self_loops(edges, 3);
  EXPECT_EQ(kept.src.to_vector<int32_t>(), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(kept.dst.to_vector<int32_t>(), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(kept.weight.to_vector<float>(), (std::vector<float>{1, 3}));
  EXPECT_EQ(kept.first.to_vector<int64_t>(), (std::vector<int64_t>{0, 2}));
  verify_errors(
      {{[&] { remove_self_loops(edges, 2); }, "InvalidArgument: remove_self_loops: src[0] is 2 but needs to be in [0, 2)"},
       {[&] {
          remove_self_loops({edges.src, list<int64_t>({0}), Tensor()}, 3);
        },
        "InvalidArgument: remove_self_loops: src has 4 entries but dst has 1"},
       {[&] {
          remove_self_loops({Tensor(), edges.dst, Tensor()}, 3);
        },
        "InvalidArgument: remove_self_loops: src or dst is undefined"}});
}

TEST(Coalesce, NothingGivesNothing) {
  const Edges none{list<int32_t>({}), list<int32_t>({}), Tensor()};
  EXPECT_EQ(coalesce(none, 0).src.numel(), 0);
  EXPECT_EQ(to_undirected(none, 3).dst.numel(), 0);
}

TEST(Coalesce, Errors) {
  const Edges edges{list<int32_t>({0, 3}), list<int32_t>({0, 0}), Tensor()};
  Tensor learned = ones(Shape{2});
  learned.set_requires_grad();
  verify_errors({{[&] { coalesce(edges, 3); }, "InvalidArgument: graph: src[1] is 3 but needs to be in [0, 3)"},
                 {[&] {
                    coalesce({edges.src, edges.dst, ones(Shape{3})}, 4);
                  },
                  "InvalidArgument: coalesce: weight has shape [3] but needs [2], one per edge"},
                 {[&] {
                    coalesce({edges.src, edges.dst, zeros(Shape{2}, DType::i64)}, 4);
                  },
                  "Unsupported: coalesce: dtype i64 is not supported, use f32 or f64"},
                 {[&] {
                    to_undirected({edges.src, edges.dst, learned}, 4);
                  },
                  "Unsupported: to_undirected: weight requires a gradient, which is not supported; detach() it"},
                 {[&] {
                    to_undirected({edges.src, Tensor(), Tensor()}, 4);
                  },
                  "InvalidArgument: to_undirected: src or dst is undefined"}});
}

}  // namespace
}  // namespace tessera::test
