#include "tessera/layers/models/graph_classifier.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/rings.h"

namespace tessera::test {
namespace {

const auto called = [](const auto& model, const GoldGraph& g) {
  Generator unused(1);
  return model(g.x, g.graph, g.nodes, unused);
};

TEST(GraphClassifier, EqualsPyG) {
  using Jump = JumpingKnowledge::Mode;
  Generator random(1);
  const auto options = [](int layers, std::optional<Jump> jump = {}) {
    return GraphClassifierOptions{.in = 6, .hidden = 4, .out = 3, .layers = layers, .dropout = 0, .jump = jump};
  };
  verify_gold("graph_classifier.gcn", GcnClassifier(options(3), random), called);
  verify_gold("graph_classifier.gcn_cat", GcnClassifier(options(2, Jump::cat), random), called);
  GraphClassifierOptions summed = options(2);
  summed.readout = Reduce::sum;
  verify_gold("graph_classifier.sage", SageClassifier(summed, random), called);
  verify_gold("graph_classifier.sage_max", SageClassifier(options(2, Jump::max), random), called);
  verify_gold("graph_classifier.gin", GinClassifier(options(2), random), called);
  GraphClassifierOptions bare = options(1), lstm = options(2, Jump::lstm);
  bare.inner_norm = lstm.inner_norm = false;
  bare.train_eps = true;
  verify_gold("graph_classifier.gin_bare", GinClassifier(bare, random), called);
  verify_gold("graph_classifier.gin_lstm", GinClassifier(lstm, random), called);
}

template <class Model>
void train_by_threads() {
  const Rings data(40, 6);
  expect_same_for_all_threads([&] {
    Generator random(5);
    Model model({.in = 6, .hidden = 8, .out = 2, .jump = JumpingKnowledge::Mode::cat}, random);
    return train_on(data, model, 60, [&] { return model(data.x, data.batch.graph, data.batch.nodes, random); });
  });
}

TEST(GraphClassifier, TrainsTheSameWithAnyThreads) {
  train_by_threads<GcnClassifier>();
  train_by_threads<SageClassifier>();
  train_by_threads<GinClassifier>();
}

TEST(GraphClassifier, StateNamesAndEvaluation) {
  Generator random(2);
  GinClassifier model({.in = 6, .hidden = 4, .out = 2, .layers = 2}, random);
  const StateDict state = state_dict(model);
  EXPECT_EQ(state.size(), 2 * (1 + 2 * 2 + 2 * 5) + 4u);
  EXPECT_EQ(state.at("conv1.eps").shape(), (Shape{1}));
  EXPECT_EQ(state.at("conv1.nn.0.weight").shape(), (Shape{4, 6}));
  EXPECT_EQ(state.at("conv1.nn.2.running_mean").shape(), (Shape{4}));
  EXPECT_EQ(state.at("convs.0.nn.3.weight").shape(), (Shape{4, 4}));
  EXPECT_EQ(state.at("convs.0.nn.5.bias").shape(), (Shape{4}));
  EXPECT_EQ(state.at("lin1.weight").shape(), (Shape{4, 4}));
  EXPECT_EQ(state.at("lin2.weight").shape(), (Shape{2, 4}));
  EXPECT_EQ(count_parameters(SageClassifier({.in = 6, .hidden = 4, .out = 2, .layers = 1}, random)), 2 * 24 + 4 + 20 + 10);

  const Rings data(9, 6);
  const auto logits = [&] { return model(data.x, data.batch.graph, data.batch.nodes, random).detach(); };
  eval(model);
  const uint64_t drawn = random.streams_used();
  EXPECT_TRUE(same_bits(logits(), logits()));
  EXPECT_EQ(random.streams_used(), drawn) << "evaluation drew random numbers";
  EXPECT_EQ(logits().shape(), (Shape{9, 2})) << "the last graph has no nodes";
  train(model);
  EXPECT_FALSE(same_bits(logits(), logits()));
}

TEST(GraphClassifier, Errors) {
  Generator random(2);
  const Rings data(4, 5);
  verify_errors({
      {[&] { GcnClassifier({.in = 0, .out = 3}, random); },
       "InvalidArgument: graph_classifier: sizes in 0, hidden 32 and out 3 need to be 1 or more"},
      {[&] { GcnClassifier({.in = 4, .out = 3, .layers = 0}, random); },
       "InvalidArgument: graph_classifier: 0 layers asked but needs 1 or more"},
      {[&] { GcnClassifier({.in = 4, .out = 3, .readout = Reduce::mul}, random); },
       "InvalidArgument: graph_classifier: readout mul is not one of sum, mean, max and min"},
      {[&] { GinClassifier({.in = 4, .out = 3}, random)(data.x, data.batch.graph, data.batch.nodes, random); },
       "InvalidArgument: linear: x has shape [" + std::to_string(data.x.dim(0)) + ", 5] but needs to be [N, 4]"},
  });
}

}  // namespace
}  // namespace tessera::test
