#include "tessera/layers/conv/transformer_conv.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TransformerConv conv(const TransformerConvOptions& options) {
  Generator generator(1);
  return TransformerConv(5, 3, generator, options);
}

Graph pair() { return Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2); }

TEST(TransformerConv, State) {
  const StateDict state = state_dict(conv({.heads = 4, .beta = true, .edge_dim = 2}));
  ASSERT_EQ(state.size(), 10u);
  for (const char* lin : {"lin_key", "lin_query", "lin_value", "lin_skip"}) {
    EXPECT_EQ(state.at(std::string(lin) + ".weight").shape(), (Shape{12, 5}));
    EXPECT_EQ(state.at(std::string(lin) + ".bias").shape(), (Shape{12}));
  }
  EXPECT_EQ(state.at("lin_edge.weight").shape(), (Shape{12, 2}));
  EXPECT_EQ(state.at("lin_beta.weight").shape(), (Shape{1, 36}));
}

TEST(TransformerConv, AttentionWeightsAddUpToOne) {
  const TransformerConv c = conv({.heads = 2});
  Generator generator(2);
  const auto [graph, weights] = c.attention_weights(normal(Shape{2, 5}, generator), pair());
  EXPECT_TRUE(graph.num_edges() == 2 && weights.shape() == (Shape{2, 2}));
  for (int head = 0; head < 2; ++head) EXPECT_NEAR(weights.data<float>()[head] + weights.data<float>()[2 + head], 1, 1e-6);
}

TEST(TransformerConv, DropoutIsOfTrainingAndTakesAStream) {
  TransformerConv c = conv({.heads = 2, .dropout = 0.5});
  Generator generator(2), a(3), b(3);
  const Tensor x = normal(Shape{2, 5}, generator);
  const Tensor first = c(x, pair(), a), second = c(x, pair(), a);
  EXPECT_TRUE(same_bits(first.detach(), c(x, pair(), b).detach()));
  EXPECT_FALSE(same_bits(first.detach(), second.detach()));
  eval(c);
  EXPECT_TRUE(same_bits(c(x, pair(), a).detach(), c(x, pair()).detach()));
}

TEST(TransformerConv, Errors) {
  const TransformerConv plain = conv({}), edges = conv({.edge_dim = 4}), drops = conv({.dropout = 0.25});
  verify_errors({
      {[&] {
         plain(zeros({3, 5}), pair());
       },
       "InvalidArgument: transformer_conv: x has shape [3, 5] but the graph has 2 sources and 2 destinations"},
      {[&] {
         plain(zeros({2, 5}), pair(), zeros({2, 4}));
       },
       "InvalidArgument: transformer_conv: edge_attr was given but the layer was made without edge_dim"},
      {[&] {
         edges(zeros({2, 5}), pair());
       },
       "InvalidArgument: transformer_conv: edge_attr was not given but the layer was made with edge_dim"},
      {[&] {
         edges(zeros({2, 5}), pair(), zeros({2, 3}));
       },
       "InvalidArgument: transformer_conv: edge_attr has shape [2, 3] but needs [2, 4]"},
      {[&] {
         drops(zeros({2, 5}), pair());
       },
       "InvalidArgument: transformer_conv: dropout 0.25 in training needs a generator"},
      {[] {
         Generator generator(1);
         TransformerConv(5, 0, generator);
       },
       "InvalidArgument: transformer_conv: in 5, out 0 and heads 1 need to be 1 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
