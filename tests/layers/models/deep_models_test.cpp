// Gcn2 and DeeperGcn.

#include <gtest/gtest.h>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/layers/models/deeper_gcn.h"
#include "tessera/layers/models/gcn2.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera::test {
namespace {

Graph path() { return Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 2}, {2, 2}), 3); }

TEST(Gcn2, EqualsPyG) {
  Generator random(1);
  const auto call = [](const Gcn2& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused);
  };
  const Gcn2Options options{.in = 6, .hidden = 5, .out = 2, .layers = 3, .dropout = 0};
  verify_gold("gcn2_model", Gcn2(options, random), call);
  Gcn2Options unshared = options;
  unshared.shared_weights = false;
  verify_gold("gcn2_model.unshared", Gcn2(unshared, random), call);
}

TEST(Gcn2, SparseFeaturesAndDropout) {
  Generator random(3);
  Gcn2 model({.in = 3, .out = 2, .layers = 4}, random);
  const SparseMatrix sparse{
      Graph::from_csr(Tensor::from<int64_t>({0, 1, 2, 3}, {4}), Tensor::from<int32_t>({2, 0, 1}, {3}), 3), ones({3})};
  const Tensor dense = Tensor::from<float>({0, 0, 1, 1, 0, 0, 0, 1, 0}, {3, 3});
  const uint64_t before = random.streams_used();
  EXPECT_FALSE(same_bits(model(sparse, path(), random).detach(), model(sparse, path(), random).detach()));
  EXPECT_EQ(random.streams_used(), before + 2 * 6);
  eval(model);
  const Tensor a = model(sparse, path(), random).detach(), b = model(dense, path(), random).detach();
  for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-6);
  EXPECT_EQ(random.streams_used(), before + 2 * 6);
}

TEST(DeeperGcn, EqualsPyG) {
  Generator random(1);
  const auto nodes = [](const DeeperGcn& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused, g.edge_attr);
  };
  const auto graphs = [](const DeeperGcn& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused, g.edge_attr, g.nodes);
  };
  DeeperGcnOptions options{.in = 6, .hidden = 4, .out = 2, .layers = 3, .edge_dim = 3, .dropout = 0};
  verify_gold("deeper_gcn_model", DeeperGcn(options, random), nodes);
  verify_gold("deeper_gcn_model.no_edges", DeeperGcn({.hidden = 6, .out = 2, .layers = 3, .dropout = 0}, random), nodes);
  options.readout = Reduce::mean;
  verify_gold("deeper_gcn_model.mean", DeeperGcn(options, random), graphs);
  options.readout = Reduce::max;
  options.norm = NodeNorm::Kind::batch;
  options.conv.norm = GenConvOptions::Norm::batch;
  verify_gold("deeper_gcn_model.max", DeeperGcn(options, random), graphs);
}

TEST(DeeperGcn, DropoutIsOfTraining) {
  Generator random(3);
  DeeperGcn model({.in = 3, .hidden = 16, .out = 2, .layers = 3, .dropout = 0.5}, random);
  const Tensor x = uniform({3, 3}, -1, 1, random);
  const uint64_t before = random.streams_used();
  EXPECT_FALSE(same_bits(model(x, path(), random).detach(), model(x, path(), random).detach()));
  EXPECT_EQ(random.streams_used(), before + 2 * 3);
  eval(model);
  EXPECT_TRUE(same_bits(model(x, path(), random).detach(), model(x, path(), random).detach()));
  EXPECT_EQ(random.streams_used(), before + 2 * 3);
}

TEST(DeepModels, Errors) {
  Generator random(2);
  const DeeperGcn edges({.in = 3, .out = 2, .layers = 1, .edge_dim = 3}, random);
  const DeeperGcn graphs({.in = 3, .out = 2, .layers = 1, .readout = Reduce::sum}, random);
  verify_errors({
      {[&] { Gcn2({.in = 4}, random); }, "InvalidArgument: gcn2: sizes in 4, hidden 64 and out 0 need to be 1 or more"},
      {[&] { Gcn2({.in = 4, .out = 2, .layers = 0}, random); }, "InvalidArgument: gcn2: 0 layers asked but needs 1 or more"},
      {[&] { Gcn2({.in = 4, .out = 2, .dropout = 3}, random); },
       "InvalidArgument: gcn2: dropout is 3 but needs to be in [0, 1]"},
      {[&] { DeeperGcn({.in = -1, .out = 2}, random); },
       "InvalidArgument: deeper_gcn: hidden 64 and out 2 need to be 1 or more, in -1 and edge_dim 0 0 or more"},
      {[&] { DeeperGcn({.in = 4, .out = 2, .layers = 0}, random); },
       "InvalidArgument: deeper_gcn: 0 layers asked but needs 1 or more"},
      {[&] { DeeperGcn({.in = 4, .out = 2, .dropout = 3}, random); },
       "InvalidArgument: deeper_gcn: dropout is 3 but needs to be in [0, 1]"},
      {[&] { DeeperGcn({.in = 4, .out = 2, .readout = Reduce::min}, random); },
       "InvalidArgument: deeper_gcn: readout min is not one of sum, mean and max"},
      {[&] {
         edges(zeros({3, 3}), path(), random);
       },
       "InvalidArgument: deeper_gcn: edge_attr was not given but the model was made with edge_dim"},
      {[&] {
         graphs(zeros({3, 3}), path(), random);
       },
       "InvalidArgument: deeper_gcn: a model with a readout needs the graph of each node"},
  });
}

}  // namespace
}  // namespace tessera::test
