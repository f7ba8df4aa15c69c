#include "tessera/layers/models/gcn.h"

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/parallel.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/data.h"
#include "tessera/tests/support/gold.h"

namespace tessera {
namespace {

using namespace test;

struct Task {
  NodeDataset data;
  Graph graph;
  SparseMatrix x;
};

Task load(const std::string& name, const std::string& folder) {
  Task task{load_node_dataset(name, folder), {}, {}};
  normalise_rows(task.data);
  const NodeDataset& d = task.data;
  task.graph = Graph::from_coo(d.src, d.dst, d.num_nodes, d.num_nodes);
  task.x = {Graph::from_csr(d.feature_rowptr, d.feature_col, d.num_features), d.feature_values};
  return task;
}

/// State after a few epochs of Kipf's recipe.
StateDict trained(const Task& task, int epochs) {
  Generator random(5);
  Gcn model({.in = task.data.num_features, .out = task.data.num_classes, .input_dropout = 0.5}, random);
  Adam optimiser({{parameters(model.convs[0]), 5e-4}, {parameters(model.convs[1]), 0}}, {.lr = 0.01});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimiser.clear_grad();
    backward(cross_entropy(model(task.x, task.graph, random), task.data.labels, task.data.splits[0].train));
    optimiser.step();
  }
  return state_dict(model);
}

void expect_same_for_every_thread_count(const Task& task, int epochs) {
  const int before = threads();
  set_threads(1);
  const StateDict one = trained(task, epochs);
  for (const int count : {2, 3}) {
    set_threads(count);
    for (const auto& [name, tensor] : trained(task, epochs))
      EXPECT_TRUE(same_bits(tensor, one.at(name))) << name << " " << count;
  }
  set_threads(before);
}

TEST(Gcn, KarateWeightsDoNotDependOnThreads) { expect_same_for_every_thread_count(load("karate", ""), 50); }

TEST(Gcn, CoraWeightsDoNotDependOnThreads) {
  if (!have_shared_data("planetoid/cora")) return;
  expect_same_for_every_thread_count(load("cora", shared_data()), 20);
}

TEST(Gcn, EqualsPyG) {
  Generator random(1);
  verify_gold("gcn_model", Gcn({.in = 6, .hidden = 5, .out = 2, .layers = 3, .dropout = 0}, random),
              [](const Gcn& m, const GoldGraph& g) {
                Generator unused(1);
                return m(g.x, g.graph, unused);
              });
  verify_gold("gcn_model.weighted",
              Gcn({.in = 6, .hidden = 5, .out = 2, .dropout = 0, .norm = NodeNorm::Kind::graph}, random),
              [](const Gcn& m, const GoldGraph& g) {
                Generator unused(1);
                return m(g.x, g.graph, unused, g.edge_weight, g.nodes);
              });
}

TEST(Gcn, StateNamesAndEvaluation) {
  Generator random(2);
  Gcn model({.in = 5, .hidden = 4, .out = 3, .layers = 3}, random);
  const StateDict state = state_dict(model);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name + " " + to_text(tensor.shape()));
  EXPECT_EQ(names, (std::vector<std::string>{"convs.0.bias [4]", "convs.0.lin.weight [4, 5]", "convs.1.bias [4]",
                                             "convs.1.lin.weight [4, 4]", "convs.2.bias [3]", "convs.2.lin.weight [3, 4]"}));
  EXPECT_EQ(count_parameters(model), 4 + 20 + 4 + 16 + 3 + 12);

  const Graph graph = Graph::from_coo(Tensor::from<int32_t>({0, 1}, {2}), Tensor::from<int32_t>({1, 2}, {2}), 3, 3);
  const Tensor x = uniform({3, 5}, -1, 1, random);
  eval(model);
  const uint64_t drawn = random.streams_used();
  const Tensor first = model(x, graph, random), second = model(x, graph, random);
  EXPECT_TRUE(same_bits(first.detach(), second.detach()));
  EXPECT_EQ(random.streams_used(), drawn) << "evaluation drew random numbers";
  train(model);
  EXPECT_FALSE(same_bits(model(x, graph, random).detach(), first.detach()));
}

/// A state dict is taken whole or not at all, and says everything that is wrong with it at once.
TEST(Gcn, LoadStateDict) {
  Generator random(2);
  Gcn model({.in = 5, .hidden = 4, .out = 3}, random), other({.in = 5, .hidden = 4, .out = 3}, random);
  load_state_dict(model, state_dict(other));
  for (const auto& [name, tensor] : state_dict(other)) EXPECT_TRUE(same_bits(tensor, state_dict(model).at(name))) << name;

  StateDict broken = state_dict(other);
  broken.erase("convs.0.bias");
  broken["convs.1.bias"] = zeros({7});
  broken["convs.2.bias"] = zeros({3});
  const Tensor before = clone(model.convs[0].lin.weight);
  broken["convs.0.lin.weight"] = zeros({4, 5});
  EXPECT_EQ(error_of([&] { load_state_dict(model, broken); }),
            "InvalidArgument: load_state_dict: missing convs.0.bias [4]; convs.1.bias is f32 [7] but needs to be f32 [3]; "
            "unexpected convs.2.bias [3]");
  EXPECT_TRUE(same_bits(before, model.convs[0].lin.weight.detach()));
}

TEST(Gcn, Errors) {
  Generator random(2);
  verify_errors({
      {[&] { Gcn({.in = 0, .out = 3}, random); },
       "InvalidArgument: gcn: sizes in 0, hidden 16 and out 3 need to be 1 or more"},
      {[&] { Gcn({.in = 4, .out = 3, .layers = 0}, random); }, "InvalidArgument: gcn: 0 layers asked but needs 1 or more"},
      {[&] { Gcn({.in = 4, .out = 3, .dropout = 1.5}, random); },
       "InvalidArgument: gcn: dropout is 1.5 but needs to be in [0, 1]"},
  });
}

}  // namespace
}  // namespace tessera
