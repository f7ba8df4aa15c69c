#include "tessera/layers/models/gin.h"

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

TEST(Gin, EqualsPyG) {
  Generator random(1);
  const auto call = [](const Gin& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused);
  };
  verify_gold("gin_model", Gin({.in = 6, .hidden = 5, .out = 2, .layers = 3, .dropout = 0}, random, {.train_eps = true}),
              call);
  verify_gold("gin_model.wide", Gin({.in = 6, .hidden = 8, .out = 8, .layers = 1, .dropout = 0}, random), call);
  verify_gold("gin_model.batch_norm",
              Gin({.in = 6, .hidden = 5, .out = 2, .dropout = 0, .norm = NodeNorm::Kind::batch, .jump = Jump::cat}, random),
              call);
}

TEST(Gin, KarateWeightsDoNotDependOnThreads) {
  const NodeDataset data = load_node_dataset("karate", "");
  const Graph graph = Graph::from_coo(data.src, data.dst, data.num_nodes, data.num_nodes);
  const SparseMatrix x{Graph::from_csr(data.feature_rowptr, data.feature_col, data.num_features), data.feature_values};
  const Restore restore;
  StateDict one;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Generator random(5);
    Gin model({.in = data.num_features, .out = data.num_classes, .norm = NodeNorm::Kind::batch}, random,
              {.train_eps = true});
    Adam optimiser(parameters(model), {.lr = 0.01});
    double first = 0, last = 0;
    for (int epoch = 0; epoch < 50; ++epoch) {
      optimiser.clear_grad();
      const Tensor loss = cross_entropy(model(x, graph, random), data.labels, data.splits[0].train);
      (epoch == 0 ? first : last) = loss.item();
      backward(loss);
      optimiser.step();
    }
    EXPECT_LT(last, 0.7 * first);
    if (count == 1) one = state_dict(model);
    for (const auto& [name, tensor] : state_dict(model)) EXPECT_TRUE(same_bits(tensor, one.at(name))) << name << count;
  }
}

/// One-hot features, as a sparse matrix and as the matrix that it is; narrower and wider than the first layer.
TEST(Gin, SparseFeatures) {
  Generator random(3);
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 2, 2, 1, 2, 3, 0}, {2, 4}), 4);
  const SparseMatrix sparse{
      Graph::from_csr(Tensor::from<int64_t>({0, 1, 2, 3, 4}, {5}), Tensor::from<int32_t>({4, 0, 2, 1}, {4}), 5),
      Tensor::from<float>({1, 2, 3, 4}, {4})};
  Tensor dense = zeros({4, 5});
  dense.mutable_data<float>()[4] = 1, dense.mutable_data<float>()[5] = 2, dense.mutable_data<float>()[12] = 3,
  dense.mutable_data<float>()[16] = 4;
  for (const int64_t hidden : {3, 9}) {
    Gin model({.in = 5, .hidden = hidden, .out = 4}, random, {.eps = 0.25});
    eval(model);
    const Tensor a = model(sparse, graph, random).detach(), b = model(dense, graph, random).detach();
    for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 5e-6);
  }
}

TEST(Gin, StateAndErrors) {
  Generator random(2);
  const Gin model({.in = 5, .hidden = 4, .out = 3, .norm = NodeNorm::Kind::layer_node}, random);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(model)) names.push_back(name + " " + to_text(tensor.shape()));
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "convs.0.eps [1]", "convs.0.nn.lins.0.bias [4]", "convs.0.nn.lins.0.weight [4, 5]",
                "convs.0.nn.lins.1.bias [4]", "convs.0.nn.lins.1.weight [4, 4]", "convs.0.nn.norms.0.bias [4]",
                "convs.0.nn.norms.0.weight [4]", "convs.1.eps [1]", "convs.1.nn.lins.0.bias [3]",
                "convs.1.nn.lins.0.weight [3, 4]", "convs.1.nn.lins.1.bias [3]", "convs.1.nn.lins.1.weight [3, 3]",
                "convs.1.nn.norms.0.bias [3]", "convs.1.nn.norms.0.weight [3]", "norms.0.bias [4]", "norms.0.weight [4]"}));
  const Graph pair = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2);
  verify_errors({
      {[&] { Gin({.in = 4}, random); }, "InvalidArgument: gin: sizes in 4, hidden 16 and out 0 need to be 1 or more"},
      {[&] {
         model(zeros({3, 5}), pair, random);
       },
       "InvalidArgument: gin: x has shape [3, 5] but needs [2, 5]"},
  });
}

}  // namespace
}  // namespace tessera::test
