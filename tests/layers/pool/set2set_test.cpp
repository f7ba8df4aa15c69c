#include "tessera/layers/pool/set2set.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/layers/linear.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/rings.h"

namespace tessera::test {
namespace {

TEST(Set2Set, EqualsPyG) {
  Generator random(1);
  verify_gold("set2set", Set2Set(6, 3, random), [](const Set2Set& read, const GoldGraph& g) { return read(g.x, g.nodes); });
}

struct Net {
  Set2Set read;
  Linear lin;
  bool training = true;
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("read", self.read);
    visitor("lin", self.lin);
  }
};

TEST(Set2Set, TrainsTheSameWithAnyThreads) {
  const Rings data(40, 6);
  expect_same_for_all_threads([&] {
    Generator random(5);
    Net net{Set2Set(6, 3, random), Linear(12, 2, random)};
    return train_on(data, net, 60, [&] { return net.lin(net.read(data.x, data.batch.nodes)); });
  });
}

/// Nodes of a graph need not be consecutive.
TEST(Set2Set, TakesNodesInAnyOrder) {
  Generator random(3);
  const Set2Set read(2, 2, random);
  const Tensor x = uniform({4, 2}, -1, 1, random);
  const Tensor mixed = read(x, SegmentPlan::from_index(Tensor::from<int32_t>({1, 0, 1, 0}, {4}), 2));
  Tensor sorted = Tensor::empty({4, 2});
  for (const auto& [to, from] : {std::pair{0, 1}, {1, 3}, {2, 0}, {3, 2}})
    std::copy_n(x.data<float>() + 2 * from, 2, sorted.mutable_data<float>() + 2 * to);
  EXPECT_TRUE(
      same_bits(mixed.detach(), read(sorted, SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 2, 4}, {3}))).detach()));
}

TEST(Set2Set, StateNamesAndErrors) {
  Generator random(2);
  const Set2Set read(3, 2, random);
  const StateDict state = state_dict(read);
  EXPECT_EQ(state.size(), 4u);
  EXPECT_EQ(state.at("lstm.weight_ih_l0").shape(), (Shape{12, 6}));
  EXPECT_EQ(state.at("lstm.weight_hh_l0").shape(), (Shape{12, 3}));
  EXPECT_EQ(state.at("lstm.bias_hh_l0").shape(), (Shape{12}));
  const SegmentPlan two = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 2}, {2}));
  verify_errors({
      {[&] { Set2Set(3, 0, random); },
       "InvalidArgument: set2set: 3 channels and 0 steps were given but it needs 1 or more of each"},
      {[&] {
         read(zeros({2, 4}), two);
       },
       "InvalidArgument: set2set: x has shape [2, 4] but needs to be [2, 3]"},
      {[&] {
         read(zeros({2, 3}), {});
       },
       "InvalidArgument: set2set: nodes is undefined"},
  });
}

}  // namespace
}  // namespace tessera::test
