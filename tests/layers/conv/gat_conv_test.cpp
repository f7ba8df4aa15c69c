#include "tessera/layers/conv/gat_conv.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

GatConv conv(const GatConvOptions& options) {
  Generator generator(1);
  return GatConv(5, 3, generator, options);
}

Graph pair() { return Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2); }

TEST(GatConv, StateAndInitialValues) {
  const GatConv c = conv({.heads = 4, .edge_dim = 2, .residual = true});
  const StateDict state = state_dict(c);
  ASSERT_EQ(state.size(), 7u);
  EXPECT_EQ(state.at("lin.weight").shape(), (Shape{12, 5}));
  EXPECT_EQ(state.at("lin_edge.weight").shape(), (Shape{12, 2}));
  EXPECT_EQ(state.at("res.weight").shape(), (Shape{12, 5}));
  for (const char* att : {"att_src", "att_dst", "att_edge"}) EXPECT_EQ(state.at(att).shape(), (Shape{1, 4, 3}));
  for (const float b : state.at("bias").span<float>()) EXPECT_EQ(b, 0);
}

/// Weights of a destination add up to 1, and times the sources' rows they give the output.
TEST(GatConv, AttentionWeights) {
  const GatConv c = conv({.heads = 2, .bias = false});
  Generator generator(2);
  const Tensor x = normal(Shape{2, 5}, generator);
  const auto [graph, weights] = c.attention_weights(x, pair());
  ASSERT_EQ(graph.num_edges(), 3);  // 0 -> 1, and the loops of both
  ASSERT_EQ(weights.shape(), (Shape{3, 2}));
  EXPECT_FALSE(weights.requires_grad());
  const float* w = weights.data<float>();
  const Tensor out = c(x, pair()), h = c.lin(x);
  for (int head = 0; head < 2; ++head) {
    EXPECT_NEAR(w[0 + head] + w[4 + head], 1, 1e-6);
    EXPECT_EQ(w[2 + head], 1);
    for (int j = 3 * head; j < 3 * head + 3; ++j)
      EXPECT_NEAR(out.data<float>()[6 + j], w[head] * h.data<float>()[j] + w[4 + head] * h.data<float>()[6 + j], 1e-6);
  }
}

TEST(GatConv, DropoutIsOfTrainingAndTakesAStream) {
  GatConv c = conv({.heads = 2, .dropout = 0.5});
  Generator generator(2);
  const Tensor x = normal(Shape{2, 5}, generator);
  Generator a(3), b(3);
  const Tensor first = c(x, pair(), a), second = c(x, pair(), a);
  EXPECT_TRUE(same_bits(first.detach(), c(x, pair(), b).detach()));
  EXPECT_FALSE(same_bits(first.detach(), second.detach()));
  EXPECT_EQ(a.streams_used(), 2u);
  eval(c);
  EXPECT_TRUE(same_bits(c(x, pair(), a).detach(), c(x, pair()).detach()));
  EXPECT_EQ(a.streams_used(), 2u);
}

TEST(GatConv, SparseFeatures) {
  const GatConv c = conv({.heads = 2, .residual = true});
  Tensor x = zeros({2, 5});
  x.mutable_data<float>()[3] = 2;
  x.mutable_data<float>()[5] = -1;
  const SparseMatrix sparse{Graph::from_csr(Tensor::from<int64_t>({0, 1, 2}, {3}), Tensor::from<int32_t>({3, 0}, {2}), 5),
                            Tensor::from<float>({2, -1}, {2})};
  const Tensor expected = c(x, pair()), got = c(sparse, pair());
  for (int64_t i = 0; i < expected.numel(); ++i) EXPECT_NEAR(got.data<float>()[i], expected.data<float>()[i], 1e-6);
}

TEST(GatConv, Errors) {
  const GatConv plain = conv({}), edges = conv({.edge_dim = 4}), drops = conv({.dropout = 0.25});
  Generator generator(1);
  verify_errors({
      {[&] {
         plain(zeros({3, 5}), pair());
       },
       "InvalidArgument: gat_conv: x has 3 rows but the graph has 2 sources and 2 destinations"},
      {[&] {
         plain(zeros({2, 4}), pair());
       },
       "InvalidArgument: linear: x has shape [2, 4] but needs to be [N, 5]"},
      {[&] {
         plain(zeros({2, 5}), pair(), zeros({2, 4}));
       },
       "InvalidArgument: gat_conv: edge_attr was given but the layer was made without edge_dim"},
      {[&] {
         edges(zeros({2, 5}), pair(), zeros({2, 3}));
       },
       "InvalidArgument: gat_conv: edge_attr has shape [2, 3] but needs [2, 4]"},
      {[&] {
         drops(zeros({2, 5}), pair());
       },
       "InvalidArgument: gat_conv: dropout 0.25 in training needs a generator"},
      {[&] { GatConv(5, 3, generator, {.heads = 0}); },
       "InvalidArgument: gat_conv: in 5, out 3 and heads 0 need to be 1 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
