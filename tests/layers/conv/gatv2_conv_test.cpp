#include "tessera/layers/conv/gatv2_conv.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

Gatv2Conv conv(const Gatv2ConvOptions& options) {
  Generator generator(1);
  return Gatv2Conv(5, 3, generator, options);
}

Graph pair() { return Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2); }

TEST(Gatv2Conv, StateAndInitialValues) {
  const Gatv2Conv c = conv({.heads = 4, .edge_dim = 2});
  const StateDict state = state_dict(c);
  ASSERT_EQ(state.size(), 7u);
  for (const char* side : {"lin_l", "lin_r"}) {
    EXPECT_EQ(state.at(std::string(side) + ".weight").shape(), (Shape{12, 5}));
    EXPECT_EQ(state.at(std::string(side) + ".bias").shape(), (Shape{12}));
  }
  EXPECT_EQ(state.at("lin_edge.weight").shape(), (Shape{12, 2}));
  EXPECT_EQ(state.at("att").shape(), (Shape{1, 4, 3}));
  for (const float b : state.at("bias").span<float>()) EXPECT_EQ(b, 0);
}

TEST(Gatv2Conv, SharedWeightsAreOneParameterOfTwoNames) {
  Gatv2Conv c = conv({.share_weights = true});
  EXPECT_EQ(state_dict(c).size(), 6u);
  EXPECT_EQ(parameters(c).size(), 4u);
}

TEST(Gatv2Conv, AttentionWeightsAddUpToOne) {
  const Gatv2Conv c = conv({.heads = 2});
  Generator generator(2);
  const auto [graph, weights] = c.attention_weights(normal(Shape{2, 5}, generator), pair());
  ASSERT_EQ(graph.num_edges(), 3);
  const float* w = weights.data<float>();
  for (int head = 0; head < 2; ++head) {
    EXPECT_NEAR(w[head] + w[4 + head], 1, 1e-6);
    EXPECT_EQ(w[2 + head], 1);
  }
}

TEST(Gatv2Conv, DropoutIsOfTrainingAndTakesAStream) {
  Gatv2Conv c = conv({.heads = 2, .dropout = 0.5});
  Generator generator(2), a(3), b(3);
  const Tensor x = normal(Shape{2, 5}, generator);
  const Tensor first = c(x, pair(), a), second = c(x, pair(), a);
  EXPECT_TRUE(same_bits(first.detach(), c(x, pair(), b).detach()));
  EXPECT_FALSE(same_bits(first.detach(), second.detach()));
  eval(c);
  EXPECT_TRUE(same_bits(c(x, pair(), a).detach(), c(x, pair()).detach()));
}

TEST(Gatv2Conv, Errors) {
  const Gatv2Conv plain = conv({}), edges = conv({.edge_dim = 4}), drops = conv({.dropout = 0.25});
  verify_errors({
      {[&] {
         plain(zeros({3, 5}), pair());
       },
       "InvalidArgument: gatv2_conv: x has 3 rows but the graph has 2 sources and 2 destinations"},
      {[&] {
         plain(zeros({2, 5}), pair(), zeros({2, 4}));
       },
       "InvalidArgument: gatv2_conv: edge_attr was given but the layer was made without edge_dim"},
      {[&] {
         edges(zeros({2, 5}), pair(), zeros({2, 3}));
       },
       "InvalidArgument: gatv2_conv: edge_attr has shape [2, 3] but needs [2, 4]"},
      {[&] {
         drops(zeros({2, 5}), pair());
       },
       "InvalidArgument: gatv2_conv: dropout 0.25 in training needs a generator"},
      {[] {
         Generator generator(1);
         Gatv2Conv(0, 3, generator);
       },
       "InvalidArgument: gatv2_conv: in 0, out 3 and heads 1 need to be 1 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
