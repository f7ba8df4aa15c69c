#include "tessera/sparse/edge_plans.h"

#include <gtest/gtest.h>

#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

void expect_plan(const SegmentPlan& plan, const std::vector<int32_t>& ids, int64_t segments) {
  EXPECT_EQ(plan.num_segments(), segments);
  EXPECT_EQ(plan.segment_of_row().to_vector<int32_t>(), ids);
  const SegmentPlan expected = SegmentPlan::from_index(Tensor::from(ids, Shape{int64_t(ids.size())}), segments);
  EXPECT_EQ(plan.offsets().to_vector<int64_t>(), expected.offsets().to_vector<int64_t>());
  ASSERT_EQ(plan.order().defined(), expected.order().defined());
  if (!plan.order().defined()) return;
  EXPECT_EQ(plan.order().to_vector<int64_t>(), expected.order().to_vector<int64_t>());
}

TEST(EdgePlans, AreThoseOfTheEdgeList) {
  for (const TwoSided& list : two_sided_graphs()) {
    SCOPED_TRACE(list.name);
    const Graph graph = list.graph();
    expect_plan(edges_by_dst(graph), list.dst, list.num_dst);
    expect_plan(edges_by_src(graph), list.src, list.num_src);
  }
}

/// Edge ids stay what they are when the rows are those of the other side.
TEST(EdgePlans, OfTheTransposeAreTheOther) {
  for (const TwoSided& list : two_sided_graphs()) {
    SCOPED_TRACE(list.name);
    const Graph graph = list.graph(), transposed = graph.transpose();
    expect_plan(edges_by_dst(transposed), list.src, list.num_src);
    expect_plan(edges_by_src(transposed), list.dst, list.num_dst);
  }
}

TEST(EdgePlans, AreKeptWithTheGraph) {
  const Graph graph = random_two_sided(7, 11, 60, 1).graph();
  EXPECT_TRUE(edges_by_dst(graph).is(edges_by_dst(graph)));
  EXPECT_TRUE(edges_by_src(graph).is(edges_by_dst(graph.transpose())));
  EXPECT_FALSE(edges_by_src(graph).is(edges_by_dst(graph)));
}

}  // namespace
}  // namespace tessera::test
