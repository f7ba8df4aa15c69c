#include "tessera/layers/models/molecule_net.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/rings.h"

namespace tessera::test {
namespace {

TEST(MoleculeNet, EqualsOgb) {
  const auto call = [](const auto& model, const GoldGraph& g) {
    Generator unused(1);
    return model(g.atoms, g.graph, g.nodes, g.bonds, unused);
  };
  Generator random(1);
  MoleculeNetOptions options{.out = 2, .hidden = 4, .layers = 2, .dropout = 0, .atom_values = {5, 3, 2}};
  verify_gold("molecule_net.gin", MoleculeGin(options, random), call);
  verify_gold("molecule_net.gcn", MoleculeGcn(options, random), call);
  options.layers = 3;
  options.virtual_node = true;
  verify_gold("molecule_net.gin_virtual", MoleculeGin(options, random), call);
  options.residual = options.sum_layers = true;
  verify_gold("molecule_net.gcn_virtual", MoleculeGcn(options, random), call);
}

template <class Model>
void train_by_threads() {
  const Rings data(40, 1);
  expect_same_for_all_threads([&] {
    Generator random(5);
    Model model({.out = 2, .hidden = 16, .layers = 3, .virtual_node = true, .atom_values = {5, 3, 2}}, random);
    return train_on(data, model, 60,
                    [&] { return model(data.atoms, data.batch.graph, data.batch.nodes, data.bonds, random); });
  });
}

TEST(MoleculeNet, TrainsTheSameWithAnyThreads) {
  train_by_threads<MoleculeGin>();
  train_by_threads<MoleculeGcn>();
}

/// The counts of parameters of the benchmark's leaderboard, whose entries are from when chirality had four values.
TEST(MoleculeNet, StateNamesAndPublishedSizes) {
  Generator random(2);
  const auto trained = [](auto&& model) {
    int64_t count = 0;
    for (const Tensor& tensor : parameters(model)) count += tensor.numel();
    return count;
  };
  MoleculeNetOptions options{.out = 1, .atom_values = {119, 4, 12, 12, 10, 6, 6, 2, 2}};
  EXPECT_EQ(trained(MoleculeGin(options, random)), 1885206);
  EXPECT_EQ(trained(MoleculeGcn(options, random)), 527701);
  options.virtual_node = true;
  EXPECT_EQ(trained(MoleculeGin(options, random)), 3336306);
  EXPECT_EQ(trained(MoleculeGcn(options, random)), 1978801);
  const StateDict state = state_dict(MoleculeGin({.out = 1, .hidden = 8, .layers = 2, .virtual_node = true}, random));
  EXPECT_EQ(state.at("gnn_node.atom_encoder.atom_embedding_list.0.weight").shape(), (Shape{119, 8}));
  EXPECT_EQ(state.at("gnn_node.atom_encoder.atom_embedding_list.8.weight").shape(), (Shape{2, 8}));
  EXPECT_EQ(state.at("gnn_node.convs.1.bond_encoder.bond_embedding_list.1.weight").shape(), (Shape{6, 8}));
  EXPECT_EQ(state.at("gnn_node.convs.0.mlp.3.weight").shape(), (Shape{8, 16}));
  EXPECT_EQ(state.at("gnn_node.virtualnode_embedding.weight").shape(), (Shape{1, 8}));
  EXPECT_EQ(state.at("gnn_node.mlp_virtualnode_list.0.4.running_var").shape(), (Shape{8}));
  EXPECT_EQ(state.at("graph_pred_linear.bias").shape(), (Shape{1}));
  const double bound = std::sqrt(6.0 / (119 + 8));
  double largest = 0;
  for (const float value : state.at("gnn_node.atom_encoder.atom_embedding_list.0.weight").span<float>())
    largest = std::max(largest, std::fabs(double(value)));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.9 * bound);
}

TEST(MoleculeNet, EvaluationDrawsNothing) {
  const Rings data(9, 1);
  Generator random(2);
  MoleculeGin model({.out = 2, .hidden = 8, .layers = 2, .virtual_node = true, .atom_values = {5, 3, 2}}, random);
  const auto result = [&] { return model(data.atoms, data.batch.graph, data.batch.nodes, data.bonds, random).detach(); };
  eval(model);
  const uint64_t drawn = random.streams_used();
  const Tensor logits = result();
  EXPECT_EQ(logits.shape(), (Shape{9, 2})) << "the last molecule has no atoms";
  EXPECT_TRUE(same_bits(logits, result()));
  EXPECT_EQ(random.streams_used(), drawn);
  EXPECT_TRUE(same_bits(
      logits, model(cast(data.atoms, DType::i32), data.batch.graph, data.batch.nodes, cast(data.bonds, DType::i32), random)
                  .detach()));
  train(model);
  EXPECT_FALSE(same_bits(result(), result()));
}

TEST(MoleculeNet, Errors) {
  Generator random(2);
  const Rings data(4, 1);
  const int64_t nodes = data.batch.graph.num_src(), edges = data.batch.graph.num_edges();
  MoleculeGcn model({.out = 1, .hidden = 4, .layers = 2, .atom_values = {5, 3, 2}}, random);
  const auto run = [&](const Tensor& atoms, const Tensor& bonds) {
    return [=, &data, &model, &random] { model(atoms, data.batch.graph, data.batch.nodes, bonds, random); };
  };
  Tensor strange = clone(data.bonds);
  strange.mutable_data<int64_t>()[4] = 6;
  Tensor negative = clone(data.atoms);
  negative.mutable_data<int64_t>()[8] = -1;
  verify_errors({
      {[&] { MoleculeGin({.out = 0}, random); },
       "InvalidArgument: molecule_net: sizes hidden 300 and out 0 need to be 1 or more"},
      {[&] { MoleculeGin({.out = 1, .layers = 1}, random); },
       "InvalidArgument: molecule_net: 1 layers asked but needs 2 or more"},
      {[&] { MoleculeGin({.out = 1, .readout = Reduce::mul}, random); },
       "InvalidArgument: molecule_net: readout mul is not one of sum, mean, max and min"},
      {run(data.atoms, strange),
       "InvalidArgument: molecule_net: edge_attr: feature 1 of row 1 is 6 but needs to be in [0, 6)"},
      {run(negative, data.bonds), "InvalidArgument: atom_encoder: feature 2 of row 2 is -1 but needs to be in [0, 2)"},
      {run(data.x, data.bonds),
       "InvalidArgument: atom_encoder: the features have shape [" + std::to_string(nodes) + ", 1] but need to be [N, 3]"},
      {run(cast(data.atoms, DType::f32), data.bonds),
       "InvalidArgument: atom_encoder: the features are f32 but need to be i32 or i64"},
      {run(data.atoms, Tensor()), "InvalidArgument: molecule_net: edge_attr: the features are undefined"},
      {run(data.atoms, data.bonds.view_rows(1, edges)), "InvalidArgument: molecule_net: edge_attr has " +
                                                            std::to_string(edges - 1) + " rows but the graph has " +
                                                            std::to_string(edges) + " edges"},
      {run(data.atoms.view_rows(1, nodes), data.bonds), "InvalidArgument: molecule_net: x has " + std::to_string(nodes - 1) +
                                                            " rows but the graph has " + std::to_string(nodes) +
                                                            " nodes and nodes has " + std::to_string(nodes) + " rows"},
  });
}

TEST(BondEncoder, SumsARowOfEachTable) {
  Generator random(3);
  const BondEncoder encoder(2, random);
  const Tensor bonds = Tensor::from<int64_t>({4, 0, 1, 0, 5, 0}, {2, 3});
  const Tensor out = encoder(bonds);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t f = 0; f < 2; ++f) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k)
        sum += encoder.sum.tables[k].weight.data<float>()[bonds.data<int64_t>()[i * 3 + int64_t(k)] * 2 + f];
      EXPECT_NEAR(out.data<float>()[i * 2 + f], sum, 1e-6);
    }
}

}  // namespace
}  // namespace tessera::test
