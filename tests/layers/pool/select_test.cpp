#include "tessera/layers/pool/select.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera {
namespace {

using namespace test;

SegmentPlan sizes(const std::vector<int64_t>& offsets) {
  return SegmentPlan::from_offsets(Tensor::from(offsets, {int64_t(offsets.size())}));
}
std::vector<int64_t> list(const Tensor& ids) { return {ids.span<int64_t>().begin(), ids.span<int64_t>().end()}; }
Tensor scores(const std::vector<float>& values) { return Tensor::from(values, {int64_t(values.size())}); }

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Case H21: very low scores, graphs of unequal size, an empty one between and one behind.
TEST(Select, TheBestOfEachGraph) {
  const Selection s = select_top(scores({-1e30f, -2e30f, -5, -3, -3, -4, 7}), sizes({0, 2, 2, 6, 7, 7}), 0.5);
  EXPECT_EQ(list(s.perm), (std::vector<int64_t>{0, 3, 4, 6}));  // of the equal -3s the lower node first
  EXPECT_EQ(list(s.nodes.offsets()), (std::vector<int64_t>{0, 1, 1, 3, 4, 4}));
}

TEST(Select, HowManyStay) {
  const auto kept = [](double ratio) { return select_top(scores({1, 2, 3, 4, 5}), sizes({0, 5}), ratio).perm.numel(); };
  EXPECT_EQ(kept(0.2), 1);
  EXPECT_EQ(kept(0.21), 2);
  EXPECT_EQ(kept(1e-300), 1);
  EXPECT_EQ(kept(1), 1) << "1.0 is a count, as in PyG";
  EXPECT_EQ(kept(3), 3);
  EXPECT_EQ(kept(1e19), 5);
  EXPECT_EQ(kept(std::numeric_limits<double>::infinity()), 5);
  EXPECT_EQ(list(select_top(scores({1, kNaN, 3}), sizes({0, 3}), 2).perm), (std::vector<int64_t>{1, 2}));
}

/// The numbers of case H21.
TEST(Select, LowScoresAreNotPadding) {
  const auto kept = [](double ratio) { return list(select_top(scores({-5, -6, -7, -9}), sizes({0, 3, 4}), ratio).perm); };
  EXPECT_EQ(kept(0.5), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(kept(0.8), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(kept(5), (std::vector<int64_t>{0, 1, 2, 3}));
}

/// Case H22: a threshold that no node reaches leaves the best of each graph.
TEST(Select, AboveAScore) {
  const auto kept = [](const std::vector<float>& values, double least) {
    return list(select_above(scores(values), sizes({0, int64_t(values.size())}), least).perm);
  };
  EXPECT_EQ(kept({1, 3, 2}, 1.5), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(kept({1, 3, 2}, 5), (std::vector<int64_t>{1}));
  EXPECT_EQ(kept({1, 3, 3}, 5), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(kept({kNaN, 1, 2}, 1.5), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(kept({}, 0.5), (std::vector<int64_t>{}));
  EXPECT_EQ(kept({.25, .25, .25, .25}, .3), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(kept({.1f, .2f, .3f, .4f}, .5), (std::vector<int64_t>{3}));
  EXPECT_EQ(kept({.1f, .2f, .3f, .4f}, .25), (std::vector<int64_t>{2, 3}));
}

TEST(Select, Errors) {
  const SegmentPlan three = sizes({0, 3}), mixed = SegmentPlan::from_index(Tensor::from<int32_t>({1, 0, 1}, {3}), 2);
  verify_errors({
      {[&] { select_top(zeros({3}), three, 0); }, "InvalidArgument: select_top: ratio is 0 but needs to be above 0"},
      {[&] { select_top(zeros({2}), three, 0.5); },
       "InvalidArgument: select_top: score has shape [2] but nodes has 3 rows"},
      {[&] { select_top(zeros({3}), mixed, 0.5); },
       "InvalidArgument: select_top: the nodes of a graph need to be consecutive"},
      {[&] { select_above(zeros({3}), three, double(kNaN)); },
       "InvalidArgument: select_above: min_score is NaN but needs to be a number"},
  });
}

}  // namespace
}  // namespace tessera
