#include "tessera/layers/pool/readout.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/layers/linear.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

/// Case H20: graphs without nodes inside and at the end of a batch read out as zeros, and are there.
TEST(Readout, GraphsWithoutNodesStay) {
  const auto plan = [](const std::vector<int64_t>& offsets) {
    return SegmentPlan::from_offsets(Tensor::from(offsets, {int64_t(offsets.size())}));
  };
  const SegmentPlan nodes = plan({0, 0, 2, 2}), none = plan({0, 0, 0, 0});
  const Tensor x = Tensor::from<float>({1, 1}, {2, 1}), nothing = zeros({0, 1});
  Generator random(1);
  const AttentionalAggregation<Linear, Linear> attention{Linear(1, 1, random), Linear(1, 1, random)};
  const auto list = [](const Tensor& rows) { return rows.detach().to_vector<float>(); };
  EXPECT_EQ(list(global_sum_pool(x, nodes)), (std::vector<float>{0, 2, 0}));
  EXPECT_EQ(list(global_mean_pool(x, nodes)), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(list(global_max_pool(x, nodes)), (std::vector<float>{0, 1, 0}));
  const float of_one = attention.nn.weight.data<float>()[0] + attention.nn.bias.data<float>()[0];
  const std::vector<float> attended = list(attention(x, nodes));
  EXPECT_EQ(attended[0], 0);
  EXPECT_NEAR(attended[1], of_one, 1e-6);
  EXPECT_EQ(attended[2], 0);
  for (const Tensor& rows : {global_sum_pool(nothing, none), global_mean_pool(nothing, none), global_max_pool(nothing, none),
                             attention(nothing, none)})
    EXPECT_EQ(list(rows), (std::vector<float>{0, 0, 0}));
}

}  // namespace
}  // namespace tessera::test
