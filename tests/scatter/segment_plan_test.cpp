#include "tessera/scatter/segment_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tessera/core/parallel.h"
#include "tessera/core/random.h"
#include "tessera/scatter/segment_plan_state.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

Tensor ids32(const std::vector<int32_t>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); }

/// Rows by segment from a plan, in the plan's order.
std::vector<std::vector<int64_t>> rows_of(const SegmentPlan& plan) {
  std::vector<std::vector<int64_t>> out(size_t(plan.num_segments()));
  const int64_t* offsets = plan.offsets().data<int64_t>();
  for (int64_t s = 0; s < plan.num_segments(); ++s)
    for (int64_t p = offsets[s]; p < offsets[s + 1]; ++p)
      out[size_t(s)].push_back(plan.order().defined() ? plan.order().data<int64_t>()[p] : p);
  return out;
}

void expect_plan(const SegmentPlan& plan, const std::vector<int32_t>& index, int64_t segments) {
  std::vector<std::vector<int64_t>> expected(static_cast<size_t>(segments));
  for (size_t e = 0; e < index.size(); ++e) expected[size_t(index[e])].push_back(int64_t(e));
  EXPECT_EQ(plan.num_segments(), segments);
  EXPECT_EQ(plan.num_rows(), int64_t(index.size()));
  EXPECT_EQ(rows_of(plan), expected);
  EXPECT_EQ(plan.segment_of_row().to_vector<int32_t>(), index);
  for (int64_t s = 0; s < segments; ++s) EXPECT_EQ(plan.counts().data<int64_t>()[s], int64_t(expected[size_t(s)].size()));
}

TEST(SegmentPlan, HoldsTheRowsOfEachSegmentInTheirOrder) {
  const Restore restore;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    for (const EdgeList& g : graphs()) {
      SCOPED_TRACE(g.name);
      expect_plan(SegmentPlan::from_index(ids32(g.dst), g.num_nodes), g.dst, g.num_nodes);
      const std::vector<int64_t> wide(g.dst.begin(), g.dst.end());
      expect_plan(SegmentPlan::from_index(Tensor::from(wide, Shape{g.num_edges()}), g.num_nodes), g.dst, g.num_nodes);
    }
  }
}

/// Large enough for the sort by buckets.
TEST(SegmentPlan, LargeIndexIsTheSameForEveryThreadCount) {
  const Restore restore;
  std::vector<int32_t> index(300000);
  const Philox random(3, 0);
  for (size_t e = 0; e < index.size(); ++e) index[e] = int32_t(random(e).bits[0] % 70000);
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    expect_plan(SegmentPlan::from_index(ids32(index), 70000), index, 70000);
  }
}

TEST(SegmentPlan, RecognisesASortedIndex) {
  EXPECT_FALSE(SegmentPlan::from_index(ids32({0, 0, 2, 2, 5}), 7).order().defined());
  EXPECT_TRUE(SegmentPlan::from_index(ids32({0, 1, 0}), 2).order().defined());
  EXPECT_FALSE(SegmentPlan::from_index(ids32({}), 0).order().defined());
}

TEST(SegmentPlan, FromOffsets) {
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 2, 2, 5}, Shape{4}));
  expect_plan(plan, {0, 0, 2, 2, 2}, 3);
  EXPECT_FALSE(plan.order().defined());
  expect_plan(SegmentPlan::from_offsets(Tensor::from<int64_t>({0}, Shape{1})), {}, 0);
}

/// Whoever changes the index afterwards does not change the plan.
TEST(SegmentPlan, OwnsItsArrays) {
  Tensor index = ids32({1, 0, 1}), offsets = Tensor::from<int64_t>({0, 1, 3}, Shape{3});
  const SegmentPlan plan = SegmentPlan::from_index(index, 2), consecutive = SegmentPlan::from_offsets(offsets);
  index.mutable_data<int32_t>()[0] = 0;
  offsets.mutable_data<int64_t>()[1] = 9;
  expect_plan(plan, {1, 0, 1}, 2);
  expect_plan(consecutive, {0, 1, 1}, 2);
}

TEST(SegmentPlan, ChunksCoverEverySegmentOnceAndHubsAreCut) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{}, {0}, {5, 0, 0, 3}, {4096}, {4097}, {10, 9000, 1, 8192, 0}, std::vector<int64_t>(3000, 2)}) {
    std::vector<int64_t> offsets = {0};
    for (const int64_t n : sizes) offsets.push_back(offsets.back() + n);
    const SegmentSchedule schedule = make_segment_schedule(offsets.data(), int64_t(sizes.size()));
    int64_t segment = 0, place = 0, slot = 0, largest = 0;
    for (const SegmentChunk& chunk : schedule.chunks) {
      EXPECT_EQ(chunk.begin, place);
      place = chunk.end;
      if (chunk.slot < 0) {
        EXPECT_EQ(chunk.segment_begin, segment);
        EXPECT_EQ(chunk.begin, offsets[size_t(chunk.segment_begin)]);
        EXPECT_EQ(chunk.end, offsets[size_t(chunk.segment_end)]);
        EXPECT_TRUE(chunk.segment_end == chunk.segment_begin + 1 || chunk.end - chunk.begin <= kSegmentChunkCost);
        segment = chunk.segment_end;
      } else {
        EXPECT_EQ(chunk.slot, slot++);
        EXPECT_LE(chunk.end - chunk.begin, kHubRows);
        if (place == offsets[size_t(chunk.segment_begin) + 1]) segment = chunk.segment_end;
      }
    }
    for (const int64_t n : sizes) largest = std::max(largest, n);
    EXPECT_EQ(segment, int64_t(sizes.size()));
    EXPECT_EQ(place, offsets.back());
    EXPECT_EQ(slot, schedule.slots);
    EXPECT_EQ(largest, schedule.longest);
  }
}

TEST(SegmentPlan, Errors) {
  const auto make = [](Tensor index, int64_t segments) { return [=] { SegmentPlan::from_index(index, segments); }; };
  const auto rows = [](Tensor offsets) { return [=] { SegmentPlan::from_offsets(offsets); }; };
  verify_errors({
      {make(ids32({0, 3}), 3), "InvalidArgument: segment_plan: index[1] is 3 but needs to be in [0, 3)"},
      {make(ids32({0, 1, -1, 7}), 3), "InvalidArgument: segment_plan: index[2] is -1 but needs to be in [0, 3)"},
      {make(Tensor::from<int64_t>({0, int64_t{1} << 32}, Shape{2}), 3),
       "InvalidArgument: segment_plan: index[1] is 4294967296 but needs to be in [0, 3)"},
      {make(ids32({0}), 0), "InvalidArgument: segment_plan: index[0] is 0 but needs to be in [0, 0)"},
      {make(ids32({}), -1), "InvalidArgument: segment_plan: num_segments is -1 but needs to be in [0, 2147483647]"},
      {make(ids32({}), int64_t{1} << 31),
       "InvalidArgument: segment_plan: num_segments is 2147483648 but needs to be in [0, 2147483647]"},
      {make(Tensor(), 3), "InvalidArgument: segment_plan: index is undefined"},
      {make(Tensor::empty(Shape{2}), 3), "InvalidArgument: segment_plan: index has dtype f32 but needs i32 or i64"},
      {make(Tensor::empty(Shape{2, 1}, DType::i32), 3),
       "InvalidArgument: segment_plan: index has shape [2, 1] but needs one dimension"},
      {rows(Tensor()), "InvalidArgument: segment_plan: offsets is undefined"},
      {rows(ids32({0, 1})), "InvalidArgument: segment_plan: offsets has dtype i32 but needs i64"},
      {rows(Tensor::empty(Shape{0}, DType::i64)),
       "InvalidArgument: segment_plan: offsets has shape [0] but needs [num_segments + 1]"},
      {rows(Tensor::from<int64_t>({1, 2}, Shape{2})), "InvalidArgument: segment_plan: offsets[0] is 1 but needs to be 0"},
      {rows(Tensor::from<int64_t>({0, 3, 2}, Shape{3})),
       "InvalidArgument: segment_plan: offsets[2] is 2 but offsets[1] before it is 3; offsets must not fall"},
      {[] { SegmentPlan().num_rows(); }, "InvalidArgument: segment_plan: an undefined plan was used"},
  });
}

}  // namespace
}  // namespace tessera::test
