#include "tessera/layers/models/pooling_net.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/unary.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/rings.h"

namespace tessera::test {
namespace {

const auto called = [](const auto& model, const GoldGraph& g) {
  Generator unused(1);
  return model(g.x, g.graph, g.nodes, unused);
};

TEST(PoolingNet, EqualsPyG) {
  Generator random(1);
  const auto options = [](int layers, double ratio, std::optional<double> min_score = {}) {
    return PoolingNetOptions{
        .in = 6, .hidden = 4, .out = 3, .layers = layers, .ratio = ratio, .min_score = min_score, .dropout = 0};
  };
  verify_gold("pooling_net.sag", SagPoolNet(options(4, 0.8), random), called);
  verify_gold("pooling_net.sag_min_score", SagPoolNet(options(3, 0.8, 0.2), random), called);
  verify_gold("pooling_net.top_k", TopKNet(options(5, 0.6), random), called);
  const SagPaperNetOptions paper{.in = 6, .hidden = 4, .out = 3, .dropout = 0};
  verify_gold("sag_pool_hierarchical_net", SagPoolHierarchicalNet(paper, random), called);
  verify_gold("sag_pool_global_net", SagPoolGlobalNet(paper, random), called);
}

template <class Model, class Options>
void train_by_threads(const Options& options) {
  const Rings data(40, 6);
  expect_same_for_all_threads([&] {
    Generator random(5);
    Model model(options, random);
    return train_on(data, model, 60, [&] { return model(data.x, data.batch.graph, data.batch.nodes, random); });
  });
}

TEST(PoolingNet, TrainsTheSameWithAnyThreads) {
  const PoolingNetOptions options{.in = 6, .hidden = 8, .out = 2, .layers = 3};
  train_by_threads<SagPoolNet>(options);
  train_by_threads<TopKNet>(options);
  const SagPaperNetOptions paper{.in = 6, .hidden = 16, .out = 2};
  train_by_threads<SagPoolHierarchicalNet>(paper);
  train_by_threads<SagPoolGlobalNet>(paper);
}

TEST(PoolingNet, StateNames) {
  Generator random(2);
  const StateDict sag = state_dict(SagPoolNet({.in = 6, .hidden = 4, .out = 2, .layers = 4}, random));
  EXPECT_EQ(sag.size(), 4 * 3 + 2 * 4 + 4u);
  EXPECT_EQ(sag.at("conv1.lin_rel.weight").shape(), (Shape{4, 6}));
  EXPECT_EQ(sag.at("convs.2.lin_root.weight").shape(), (Shape{4, 4}));
  EXPECT_EQ(sag.at("pools.1.gnn.lin_rel.weight").shape(), (Shape{1, 4}));
  EXPECT_EQ(sag.at("pools.1.select.weight").shape(), (Shape{1, 1}));
  EXPECT_EQ(sag.at("lin1.weight").shape(), (Shape{4, 16}));
  EXPECT_EQ(state_dict(TopKNet({.in = 6, .hidden = 4, .out = 2}, random)).at("pools.0.select.weight").shape(),
            (Shape{1, 4}));
  const StateDict paper = state_dict(SagPoolHierarchicalNet({.in = 6, .hidden = 4, .out = 2}, random));
  EXPECT_EQ(paper.size(), 3 * 2 + 3 * 3 + 6u);
  EXPECT_EQ(paper.at("pool3.gnn.lin.weight").shape(), (Shape{1, 4}));
  EXPECT_EQ(paper.at("lin3.weight").shape(), (Shape{2, 2}));
  EXPECT_EQ(state_dict(SagPoolGlobalNet({.in = 6, .hidden = 4, .out = 2}, random)).at("lin1.weight").shape(),
            (Shape{4, 24}));
}

TEST(PoolingNet, ActivationOfTheResultAndEvaluation) {
  const Rings data(9, 6);
  Generator random(2);
  PoolingNetOptions options{.in = 6, .hidden = 4, .out = 2};
  SagPoolNet model(options, random);
  const auto result = [&] { return model(data.x, data.batch.graph, data.batch.nodes, random).detach(); };
  eval(model);
  const uint64_t drawn = random.streams_used();
  const Tensor logits = result();
  EXPECT_EQ(logits.shape(), (Shape{9, 2})) << "the last graph has no nodes";
  EXPECT_TRUE(same_bits(logits, result()));
  EXPECT_EQ(random.streams_used(), drawn) << "evaluation drew random numbers";
  model.options.out_activation = sigmoid;
  EXPECT_TRUE(same_bits(result(), sigmoid(logits)));
  train(model);
  EXPECT_FALSE(same_bits(result(), result()));
}

TEST(PoolingNet, Errors) {
  Generator random(2);
  verify_errors({
      {[&] { SagPoolNet({.in = 4, .hidden = 0, .out = 3}, random); },
       "InvalidArgument: pooling_net: sizes in 4, hidden 0 and out 3 need to be 1 or more"},
      {[&] { TopKNet({.in = 4, .out = 3, .layers = 0}, random); },
       "InvalidArgument: pooling_net: 0 layers asked but needs 1 or more"},
      {[&] { SagPoolHierarchicalNet({.in = 4, .hidden = 1, .out = 3}, random); },
       "InvalidArgument: sag_pool_hierarchical_net: sizes in 4, hidden 1 and out 3 need to be 1 or more, hidden 2 or more"},
      {[&] { SagPoolGlobalNet({.in = 0, .out = 3}, random); },
       "InvalidArgument: sag_pool_global_net: sizes in 0, hidden 128 and out 3 need to be 1 or more, hidden 2 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
