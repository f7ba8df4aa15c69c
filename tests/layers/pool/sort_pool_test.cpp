#include "tessera/layers/pool/sort_pool.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera::test {
namespace {

TEST(SortPool, EqualsPyG) {
  for (const int64_t k : {2, 7})
    verify_gold("sort_pool." + std::to_string(k), [=](const GoldGraph& g) { return sort_pool(g.x, g.nodes, k); });
}

SegmentPlan sizes(const std::vector<int64_t>& offsets) {
  return SegmentPlan::from_offsets(Tensor::from(offsets, {int64_t(offsets.size())}));
}

/// Case H21: padding never competes, however low the values; of equal ones the lower node is first; a graph without nodes is
/// zeros, wherever it stands.
TEST(SortPool, PaddingAndTies) {
  const float low = -std::numeric_limits<float>::max();
  const Tensor x = Tensor::from<float>({1, -5, 2, low, 3, -5, 4, -9}, {4, 2});
  EXPECT_EQ(sort_pool(x, sizes({0, 3, 3, 4, 4}), 2).to_vector<float>(),
            (std::vector<float>{1, -5, 3, -5, 0, 0, 0, 0, 4, -9, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sort_pool(zeros({0, 2}), sizes({0, 0, 0}), 1).to_vector<float>(), (std::vector<float>{0, 0, 0, 0}));
}

TEST(SortPool, Errors) {
  const SegmentPlan mixed = SegmentPlan::from_index(Tensor::from<int32_t>({1, 0, 1}, {3}), 2);
  verify_errors({
      {[&] {
         sort_pool(zeros({3, 2}), sizes({0, 3}), 0);
       },
       "InvalidArgument: sort_pool: k is 0 but needs to be 1 or more"},
      {[&] {
         sort_pool(zeros({3, 2}), sizes({0, 3, 3}), int64_t{1} << 40);
       },
       "InvalidArgument: sort_pool: k is 1099511627776, which for 2 graphs are more than 2147483647 rows"},
      {[&] {
         sort_pool(zeros({3, 0}), sizes({0, 3}), 1);
       },
       "InvalidArgument: sort_pool: x needs to be [N, C] with 1 channel or more"},
      {[&] {
         sort_pool(zeros({3, 1}), {}, 1);
       },
       "InvalidArgument: sort_pool: nodes is undefined"},
      {[&] {
         sort_pool(zeros({2, 1}), sizes({0, 3}), 1);
       },
       "InvalidArgument: select_top: score has shape [2] but nodes has 3 rows"},
      {[&] {
         sort_pool(zeros({3, 1}), mixed, 1);
       },
       "InvalidArgument: select_top: the nodes of a graph need to be consecutive"},
  });
}

}  // namespace
}  // namespace tessera::test
