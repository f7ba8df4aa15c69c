#include "tessera/layers/mlp.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera::test {
namespace {

TEST(Mlp, EqualsPyG) {
  Generator random(1);
  const auto call = [](const Mlp& mlp, const GoldGraph& g) { return mlp(g.x); };
  verify_gold("mlp", Mlp({6, 5, 4, 3}, random), call);
  verify_gold("mlp.act_first", Mlp({6, 5, 3}, random, {.act = Activation::tanh, .act_first = true, .bias = false}), call);
  verify_gold("mlp.not_plain",
              Mlp({6, 4}, random, {.act = Activation::elu, .norm = NodeNorm::Kind::none, .plain_last = false}), call);
  verify_gold("mlp.graph_norm", Mlp({6, 5, 4}, random, {.norm = NodeNorm::Kind::graph}),
              [](const Mlp& mlp, const GoldGraph& g) {
                Generator unused(1);
                return mlp(g.x, unused, g.nodes);
              });
}

/// Every norm, and where the first product is taken elsewhere.
TEST(Mlp, AfterFirstProduct) {
  using Kind = NodeNorm::Kind;
  Generator random(2);
  const Tensor x = uniform({7, 6}, -1, 1, random);
  for (const Kind norm : {Kind::none, Kind::batch, Kind::layer, Kind::layer_node, Kind::graph, Kind::instance, Kind::pair})
    for (const bool act_first : {false, true})
      for (const bool bias : {false, true}) {
        const Mlp mlp({6, 5, 4}, random, {.act = Activation::elu, .act_first = act_first, .norm = norm, .bias = bias});
        const Tensor a = mlp(x).detach();
        const Tensor b = mlp.after_first_product(matmul(x, mlp.lins[0].weight, {.transpose_b = true})).detach();
        for (int64_t i = 0; i < a.numel(); ++i) ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 2e-6) << int(norm);
      }
}

TEST(Mlp, DropoutIsOfTrainingAndOfHiddenLayers) {
  Generator random(3);
  Mlp mlp({6, 32, 4}, random, {.dropout = 0.5});
  const Tensor x = uniform({3, 6}, -1, 1, random);
  EXPECT_EQ(error_of([&] { mlp(x); }), "InvalidArgument: mlp: dropout 0.5 in training needs a generator");
  const uint64_t before = random.streams_used();
  EXPECT_FALSE(same_bits(mlp(x, random).detach(), mlp(x, random).detach()));
  EXPECT_EQ(random.streams_used(), before + 2);
  eval(mlp);
  EXPECT_TRUE(same_bits(mlp(x, random).detach(), mlp(x).detach()));
  EXPECT_EQ(random.streams_used(), before + 2);
}

TEST(Mlp, Errors) {
  Generator random(3);
  const Mlp mlp({6, 4}, random);
  verify_errors({
      {[&] { Mlp({6}, random); }, "InvalidArgument: mlp: 1 channel counts were given but it needs 2 or more"},
      {[&] {
         Mlp({6, 0}, random);
       },
       "InvalidArgument: mlp: channel count 1 is 0 but needs to be 1 or more"},
      {[&] {
         Mlp({6, 4}, random, {.dropout = -1});
       },
       "InvalidArgument: mlp: dropout is -1 but needs to be in [0, 1]"},
      {[&] {
         mlp(zeros({3, 5}));
       },
       "InvalidArgument: mlp: x has shape [3, 5] but needs to be [N, 6]"},
  });
}

}  // namespace
}  // namespace tessera::test
