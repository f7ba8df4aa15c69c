#include "tessera/layers/models/graph_sage.h"

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

TEST(GraphSage, EqualsPyG) {
  Generator random(1);
  const auto verify = [&](const std::string& name, const GnnOptions& options, const SageConvOptions& conv = {}) {
    verify_gold(name, GraphSage(options, random, conv), [](const GraphSage& m, const GoldGraph& g) {
      Generator unused(1);
      return m(g.x, g.graph, unused);
    });
  };
  verify("graph_sage_model", {.in = 6, .hidden = 5, .out = 2, .layers = 3, .dropout = 0});
  verify("graph_sage_model.one_layer", {.in = 6, .hidden = 5, .out = 2, .layers = 1, .dropout = 0},
         {.aggregate = Reduce::max});
  verify("graph_sage_model.batch_norm", {.in = 6,
                                         .hidden = 5,
                                         .out = 2,
                                         .layers = 3,
                                         .dropout = 0,
                                         .act = Activation::elu,
                                         .norm = NodeNorm::Kind::batch,
                                         .jump = Jump::last});
  verify(
      "graph_sage_model.layer_norm",
      {.in = 6, .hidden = 5, .out = 2, .dropout = 0, .act_first = true, .norm = NodeNorm::Kind::layer, .jump = Jump::cat});
  verify("graph_sage_model.max",
         {.in = 6, .hidden = 4, .out = 2, .layers = 3, .dropout = 0, .act = Activation::tanh, .jump = Jump::max});
  verify("graph_sage_model.lstm", {.in = 6, .hidden = 4, .out = 2, .dropout = 0, .jump = Jump::lstm});
}

struct Karate {
  NodeDataset data = load_node_dataset("karate", "");
  Graph graph = Graph::from_coo(data.src, data.dst, data.num_nodes, data.num_nodes);
  SparseMatrix x{Graph::from_csr(data.feature_rowptr, data.feature_col, data.num_features), data.feature_values};
};

TEST(GraphSage, KarateWeightsDoNotDependOnThreads) {
  const Karate karate;
  const Restore restore;
  StateDict one;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Generator random(5);
    GraphSage model({.in = karate.data.num_features, .out = karate.data.num_classes, .norm = NodeNorm::Kind::batch}, random);
    Adam optimiser(parameters(model), {.lr = 0.01});
    double first = 0, last = 0;
    for (int epoch = 0; epoch < 50; ++epoch) {
      optimiser.clear_grad();
      const Tensor loss =
          cross_entropy(model(karate.x, karate.graph, random), karate.data.labels, karate.data.splits[0].train);
      (epoch == 0 ? first : last) = loss.item();
      backward(loss);
      optimiser.step();
    }
    EXPECT_LT(last, 0.7 * first);
    if (count == 1) one = state_dict(model);
    for (const auto& [name, tensor] : state_dict(model)) EXPECT_TRUE(same_bits(tensor, one.at(name))) << name << count;
  }
}

/// Sparse features give what the same features give as a dense matrix.
TEST(GraphSage, SparseFeatures) {
  const Karate karate;
  Generator random(3);
  Tensor dense = zeros({karate.x.rows(), karate.x.columns()});
  const int64_t* rowptr = karate.x.pattern.rowptr().data<int64_t>();
  for (int64_t r = 0; r < karate.x.rows(); ++r)
    for (int64_t k = rowptr[r]; k < rowptr[r + 1]; ++k)
      dense.mutable_data<float>()[r * karate.x.columns() + karate.x.pattern.col().data<int32_t>()[k]] =
          karate.x.values.data<float>()[k];
  for (const SageConvOptions& conv :
       {SageConvOptions{}, SageConvOptions{.aggregate = Reduce::max, .project = true}, SageConvOptions{.normalize = true}}) {
    GraphSage model({.in = karate.data.num_features, .out = 4}, random, conv);
    eval(model);
    const Tensor a = model(karate.x, karate.graph, random).detach(), b = model(dense, karate.graph, random).detach();
    for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 2e-6);
  }
  const GraphSage widest({.in = karate.data.num_features, .out = 4}, random, {.aggregate = Reduce::max});
  EXPECT_EQ(error_of([&] { widest(karate.x, karate.graph, random); }),
            "Unsupported: sage_conv: reduce max of a sparse x needs project");
}

TEST(GraphSage, StateNamesAndEvaluation) {
  Generator random(2);
  GraphSage model({.in = 5, .hidden = 4, .out = 3, .norm = NodeNorm::Kind::batch, .jump = Jump::cat}, random);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(model)) names.push_back(name + " " + to_text(tensor.shape()));
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "convs.0.lin_l.bias [4]", "convs.0.lin_l.weight [4, 5]", "convs.0.lin_r.weight [4, 5]",
                "convs.1.lin_l.bias [4]", "convs.1.lin_l.weight [4, 4]", "convs.1.lin_r.weight [4, 4]", "lin.bias [3]",
                "lin.weight [3, 8]", "norms.0.module.bias [4]", "norms.0.module.num_batches_tracked []",
                "norms.0.module.running_mean [4]", "norms.0.module.running_var [4]", "norms.0.module.weight [4]",
                "norms.1.module.bias [4]", "norms.1.module.num_batches_tracked []", "norms.1.module.running_mean [4]",
                "norms.1.module.running_var [4]", "norms.1.module.weight [4]"}));
  const Graph graph = Graph::from_coo(Tensor::from<int32_t>({0, 1}, {2}), Tensor::from<int32_t>({1, 2}, {2}), 3, 3);
  const Tensor x = uniform({3, 5}, -1, 1, random);
  eval(model);
  const uint64_t drawn = random.streams_used();
  EXPECT_TRUE(same_bits(model(x, graph, random).detach(), model(x, graph, random).detach()));
  EXPECT_EQ(random.streams_used(), drawn) << "evaluation drew random numbers";
  EXPECT_EQ(model.between.norms[0].batch.module.num_batches_tracked.data<int64_t>()[0], 0);
  train(model);
  EXPECT_FALSE(same_bits(model(x, graph, random).detach(), model(x, graph, random).detach()));
  EXPECT_EQ(model.between.norms[1].batch.module.num_batches_tracked.data<int64_t>()[0], 2);
}

TEST(GraphSage, Errors) {
  Generator random(2);
  verify_errors({
      {[&] { GraphSage({.in = 4}, random); },
       "InvalidArgument: graph_sage: sizes in 4, hidden 16 and out 0 need to be 1 or more"},
      {[&] { GraphSage({.in = 4, .out = 3, .layers = -1}, random); },
       "InvalidArgument: graph_sage: -1 layers asked but needs 1 or more"},
      {[&] { GraphSage({.in = 4, .out = 3, .input_dropout = -0.5}, random); },
       "InvalidArgument: graph_sage: dropout is -0.5 but needs to be in [0, 1]"},
      {[&] { GraphSage({.in = 4, .out = 3}, random, {.aggregate = Reduce::mul}); },
       "InvalidArgument: sage_conv: reduce mul is not one of sum, mean, max and min"},
      {[&] {
         const GraphSage model({.in = 2, .out = 3}, random);
         model(SparseMatrix{Graph::from_csr(Tensor::from<int64_t>({0, 1}, {2}), Tensor::from<int32_t>({0}, {1}), 2),
                            ones({1})},
               Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2), random);
       },
       "InvalidArgument: sage_conv: x has 1 rows but the graph has 2 sources and 2 destinations"},
  });
}

}  // namespace
}  // namespace tessera::test
