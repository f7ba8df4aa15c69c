#include "tessera/layers/conv/message_passing.h"

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/layers/linear.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera::test {
namespace {

/// The example of message_passing.h.
struct AlikeConv {
  Linear lin;
  Tensor operator()(const Tensor& x, const Graph& graph) const {
    const auto message = [](const EdgeRows& e) {
      return mul(e.x_j(), exp(neg(sum(square(sub(e.x_i(), e.x_j())), 1, true))));
    };
    const auto update = [&](const Tensor& received, const Tensor& own) { return lin(add(received, own)); };
    return MessagePassing{message, Reduce::mean, update}(x, graph);
  }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin", self.lin);
  }
};

TEST(MessagePassing, EqualsPyG) {
  Generator random(1);
  verify_gold("message_passing", AlikeConv{Linear(6, 4, random)},
              [](const AlikeConv& conv, const GoldGraph& g) { return conv(g.x, g.graph); });
}

/// A graph whose edge ids are not the order of its rows, with an empty row and parallel edges.
Graph small() { return Graph::from_edge_index(Tensor::from<int64_t>({0, 2, 0, 1, 0, 2, 0, 2, 1, 2}, {2, 5}), 4); }

TEST(MessagePassing, RowsOfBothEndsByEdgeId) {
  const Tensor src = Tensor::from<float>({10, 11, 12, 13}, {4, 1}), dst = Tensor::from<float>({0, 1, 2, 3}, {4, 1});
  const EdgeRows rows(small(), src, dst, Tensor::from<float>({1, 2, 3, 4, 5}, {5}));
  EXPECT_EQ(rows.x_j().to_vector<float>(), (std::vector<float>{10, 12, 10, 11, 10}));
  EXPECT_EQ(rows.x_i().to_vector<float>(), (std::vector<float>{2, 0, 2, 1, 2}));
  EXPECT_EQ(rows.difference().to_vector<float>(), (std::vector<float>{8, 12, 8, 10, 8}));
  EXPECT_EQ(rows.edge_attr().numel(), 5);
}

TEST(MessagePassing, AggregationsAndEmptyRows) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {4, 1}), attr = Tensor::from<float>({1, 2, 3, 4, 5}, {5, 1});
  const auto run = [&](const Aggregation& aggregate) {
    return MessagePassing{[](const EdgeRows& e) { return e.edge_attr(); }, aggregate}(x, small(), attr).to_vector<float>();
  };
  EXPECT_EQ(run(Reduce::sum), (std::vector<float>{2, 4, 9, 0}));
  EXPECT_EQ(run(Reduce::mean), (std::vector<float>{2, 4, 3, 0}));
  EXPECT_EQ(run(Reduce::max), (std::vector<float>{2, 4, 5, 0}));
  EXPECT_EQ(run(Reduce::min), (std::vector<float>{2, 4, 1, 0}));
  EXPECT_EQ(run(Reduce::mul), (std::vector<float>{2, 4, 15, 1}));
  const auto variance = [](const Tensor& m, const SegmentPlan& plan) { return segment_var(m, plan, 0); };
  const std::vector<float> var = run(variance);
  EXPECT_FLOAT_EQ(var[2], 8.0f / 3);
  EXPECT_EQ(var[3], 0);
}

/// Case H15: the gradient of a product with a zero among its factors, here a user's weight on each message.
TEST(MessagePassing, ProductWithAZeroFactor) {
  const Graph complete = Graph::from_edge_index(Tensor::from<int64_t>({0, 0, 1, 1, 2, 2, 1, 2, 0, 2, 0, 1}, {2, 6}), 3);
  const Tensor x = Tensor::from<float>({0, 1, 2}, {3, 1});
  Tensor weight = Tensor::from<float>({1, 2}, {1, 2}).set_requires_grad();
  const auto message = [&](const EdgeRows& e) { return mul(e.x_j(), weight); };
  const Tensor out = MessagePassing{message, Reduce::mul}(x, complete);
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{2, 8, 0, 0, 0, 0}));
  backward(sum(out));
  EXPECT_EQ(weight.grad().to_vector<float>(), (std::vector<float>{4, 8}));
}

struct Shifted {
  Linear lin;
  Tensor operator()(const EdgeRows& e) const { return lin(e.x_j()); }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin", self.lin);
  }
};

TEST(MessagePassing, ModulesArePartOfTheState) {
  Generator random(1);
  const MessagePassing layer{Shifted{Linear(3, 2, random)}, Reduce::max};
  const StateDict state = state_dict(layer);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state.at("message.lin.weight").shape(), (Shape{2, 3}));
  EXPECT_EQ(layer(uniform({4, 3}, -1, 1, random), small()).shape(), (Shape{4, 2}));
}

TEST(MessagePassing, Errors) {
  const Tensor x = zeros({4, 2});
  const auto short_message = [](const EdgeRows& e) { return slice(e.x_j(), 0, 0, 3); };
  const auto no_message = [](const EdgeRows&) { return Tensor(); };
  verify_errors({
      {[&] {
         EdgeRows(small(), zeros({3, 2}), x, {});
       },
       "InvalidArgument: message_passing: x has shape [3, 2] but the graph has 4 sources"},
      {[&] {
         EdgeRows(small(), x, zeros({5, 2}), {});
       },
       "InvalidArgument: message_passing: x_dst has shape [5, 2] but the graph has 4 destinations"},
      {[&] { EdgeRows(small(), x, x, zeros({6})); },
       "InvalidArgument: message_passing: edge_attr has shape [6] but the graph has 5 edges"},
      {[&] {
         MessagePassing{short_message, Reduce::sum}(x, small());
       },
       "InvalidArgument: message_passing: the messages have shape [3, 2] but the graph has 5 edges"},
      {[&] {
         MessagePassing{no_message, Reduce::sum}(x, small());
       },
       "InvalidArgument: message_passing: the messages have shape undefined but the graph has 5 edges"},
  });
}

}  // namespace
}  // namespace tessera::test
