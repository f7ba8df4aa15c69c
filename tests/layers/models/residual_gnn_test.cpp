#include "tessera/layers/models/residual_gnn.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera::test {
namespace {

TEST(ResidualGnn, EqualsTheModelsOfItsPaper) {
  Generator random(1);
  for (const auto& [name, aggregate] : {std::pair{"residual_gnn.gcn", ResidualGnnOptions::Aggregate::gcn},
                                        {"residual_gnn.sage", ResidualGnnOptions::Aggregate::sage}})
    verify_gold(name,
                ResidualGnn({.in = 6, .hidden = 4, .out = 2, .layers = 2, .aggregate = aggregate, .dropout = 0}, random),
                [](const ResidualGnn& model, const GoldGraph& g) {
                  Generator unused(1);
                  return model(g.x, g.graph, unused);
                });
}

TEST(ResidualGnn, DropoutIsForTraining) {
  Generator random(1);
  ResidualGnn model({.in = 3, .hidden = 4, .out = 2, .layers = 2, .dropout = 0.5}, random);
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 0}, {2, 2}), 2);
  const Tensor x = ones({2, 3});
  EXPECT_NE(model(x, graph, random).to_vector<float>(), model(x, graph, random).to_vector<float>());
  eval(model);
  EXPECT_EQ(model(x, graph, random).to_vector<float>(), model(x, graph, random).to_vector<float>());
}

TEST(ResidualGnn, Errors) {
  Generator random(1);
  verify_errors({
      {[&] { ResidualGnn({.in = 3, .hidden = 0, .out = 2}, random); },
       "InvalidArgument: residual_gnn: sizes in 3, hidden 0 and out 2 need to be 1 or more"},
      {[&] { ResidualGnn({.in = 3, .out = 2, .layers = 0}, random); },
       "InvalidArgument: residual_gnn: 0 layers asked but needs 1 or more"},
      {[&] { ResidualGnn({.in = 3, .out = 2, .dropout = 1.5}, random); },
       "InvalidArgument: residual_gnn: dropout is 1.5 but needs to be in [0, 1]"},
  });
}

}  // namespace
}  // namespace tessera::test
