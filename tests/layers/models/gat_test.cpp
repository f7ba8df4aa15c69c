#include "tessera/layers/models/gat.h"

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/parallel.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

TEST(Gat, EqualsPyG) {
  Generator random(1);
  const Gat model({.in = 6, .hidden = 3, .out = 2, .heads = 4, .out_heads = 2, .dropout = 0}, random);
  verify_gold("gat_model", model, [](const Gat& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused);
  });
}

struct Trained {
  StateDict state;
  double first_loss = 0, last_loss = 0;
};

/// A few epochs with dropout everywhere, on the karate club.
Trained trained(int epochs) {
  const NodeDataset data = load_node_dataset("karate", "");
  const Graph graph = Graph::from_coo(data.src, data.dst, data.num_nodes, data.num_nodes);
  const SparseMatrix x{Graph::from_csr(data.feature_rowptr, data.feature_col, data.num_features), data.feature_values};
  Generator random(5);
  Gat model({.in = data.num_features, .out = data.num_classes}, random);
  Adam optimiser(parameters(model), {.lr = 0.01});
  Trained result;
  const auto loss = [&] { return cross_entropy(model(x, graph, random), data.labels, data.splits[0].train); };
  const auto evaluated = [&] {
    const NoGrad off;
    eval(model);
    const double value = loss().item();
    train(model);
    return value;
  };
  result.first_loss = evaluated();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimiser.clear_grad();
    backward(loss());
    optimiser.step();
  }
  result.last_loss = evaluated();
  result.state = state_dict(model);
  return result;
}

TEST(Gat, KarateWeightsDoNotDependOnThreads) {
  const Restore restore;
  set_threads(1);
  const Trained one = trained(100);
  EXPECT_LT(one.last_loss, 0.7 * one.first_loss);
  for (const int count : {2, 3}) {
    set_threads(count);
    for (const auto& [name, tensor] : trained(100).state) EXPECT_TRUE(same_bits(tensor, one.state.at(name))) << name << count;
  }
}

TEST(Gat, StateNamesAndEvaluation) {
  Generator random(2);
  Gat model({.in = 5, .hidden = 4, .out = 3, .layers = 3, .heads = 2}, random);
  const StateDict state = state_dict(model);
  ASSERT_EQ(state.size(), 12u);
  EXPECT_EQ(state.at("convs.0.lin.weight").shape(), (Shape{8, 5}));
  EXPECT_EQ(state.at("convs.1.lin.weight").shape(), (Shape{8, 8}));
  EXPECT_EQ(state.at("convs.2.lin.weight").shape(), (Shape{3, 8}));
  EXPECT_EQ(state.at("convs.2.att_dst").shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(state.at("convs.2.bias").shape(), (Shape{3}));

  const Graph graph = Graph::from_coo(Tensor::from<int32_t>({0, 1}, {2}), Tensor::from<int32_t>({1, 2}, {2}), 3, 3);
  const Tensor x = uniform({3, 5}, -1, 1, random);
  eval(model);
  const uint64_t drawn = random.streams_used();
  EXPECT_TRUE(same_bits(model(x, graph, random).detach(), model(x, graph, random).detach()));
  EXPECT_EQ(random.streams_used(), drawn) << "evaluation drew random numbers";
  train(model);
  EXPECT_FALSE(same_bits(model(x, graph, random).detach(), model(x, graph, random).detach()));
}

TEST(Gat, Errors) {
  Generator random(2);
  verify_errors({
      {[&] { Gat({.in = 0, .out = 3}, random); },
       "InvalidArgument: gat: sizes in 0, hidden 8 and out 3 need to be 1 or more"},
      {[&] { Gat({.in = 4, .out = 3, .out_heads = 0}, random); },
       "InvalidArgument: gat: 2 layers, 8 heads and 0 out_heads were given but it needs 1 or more of each"},
  });
}

}  // namespace
}  // namespace tessera::test
