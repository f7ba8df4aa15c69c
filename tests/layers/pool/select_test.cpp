#include "tessera/layers/pool/select.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/core/ops/create.h"
#include "tessera/layers/jumping_knowledge.h"
#include "tessera/sparse/graph_batch.h"
#include "tessera/sparse/subgraph.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera {
namespace {

using namespace test;

SegmentPlan sizes(const std::vector<int64_t>& offsets) {
  return SegmentPlan::from_offsets(Tensor::from(offsets, {int64_t(offsets.size())}));
}
std::vector<int64_t> list(const Tensor& ids) { return {ids.span<int64_t>().begin(), ids.span<int64_t>().end()}; }
Tensor scores(const std::vector<float>& values) { return Tensor::from(values, {int64_t(values.size())}); }

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Case H21: very low scores, graphs of unequal size, an empty one between and one behind.
TEST(Select, TheBestOfEachGraph) {
  const Selection s = select_top(scores({-1e30f, -2e30f, -5, -3, -3, -4, 7}), sizes({0, 2, 2, 6, 7, 7}), 0.5);
  EXPECT_EQ(list(s.perm), (std::vector<int64_t>{0, 3, 4, 6}));  // of the equal -3s the lower node first
  EXPECT_EQ(list(s.nodes.offsets()), (std::vector<int64_t>{0, 1, 1, 3, 4, 4}));
}

TEST(Select, HowManyStay) {
  const auto kept = [](double ratio) { return select_top(scores({1, 2, 3, 4, 5}), sizes({0, 5}), ratio).perm.numel(); };
  EXPECT_EQ(kept(0.2), 1);
  EXPECT_EQ(kept(0.21), 2);
  EXPECT_EQ(kept(1e-300), 1);
  EXPECT_EQ(kept(1), 1) << "1.0 is a count, as in PyG";
  EXPECT_EQ(kept(3), 3);
  EXPECT_EQ(kept(1e19), 5);
  EXPECT_EQ(kept(std::numeric_limits<double>::infinity()), 5);
  EXPECT_EQ(list(select_top(scores({1, kNaN, 3}), sizes({0, 3}), 2).perm), (std::vector<int64_t>{1, 2}));
}

/// Case H22: a threshold that no node reaches leaves the best of each graph.
TEST(Select, AboveAScore) {
  const auto kept = [](const std::vector<float>& values, double least) {
    return list(select_above(scores(values), sizes({0, int64_t(values.size())}), least).perm);
  };
  EXPECT_EQ(kept({1, 3, 2}, 1.5), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(kept({1, 3, 2}, 5), (std::vector<int64_t>{1}));
  EXPECT_EQ(kept({1, 3, 3}, 5), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(kept({kNaN, 1, 2}, 1.5), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(kept({}, 0.5), (std::vector<int64_t>{}));
}

TEST(Select, Errors) {
  const SegmentPlan three = sizes({0, 3}), mixed = SegmentPlan::from_index(Tensor::from<int32_t>({1, 0, 1}, {3}), 2);
  verify_errors({
      {[&] { select_top(zeros({3}), three, 0); }, "InvalidArgument: select_top: ratio is 0 but needs to be above 0"},
      {[&] { select_top(zeros({2}), three, 0.5); },
       "InvalidArgument: select_top: score has shape [2] but nodes has 3 rows"},
      {[&] { select_top(zeros({3}), mixed, 0.5); },
       "InvalidArgument: select_top: the nodes of a graph need to be consecutive"},
      {[&] { select_above(zeros({3}), three, double(kNaN)); },
       "InvalidArgument: select_above: min_score is NaN but needs to be a number"},
  });
}

TEST(Subgraph, KeepsTheEdgesBetweenItsNodesInTheirOrder) {
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 3, 2, 3, 1, 3, 2, 0, 3, 2, 0, 3}, {2, 6}), 5);
  const Subgraph sub = induced_subgraph(graph, Tensor::from<int64_t>({3, 2}, {2}));
  EXPECT_EQ(list(sub.edge_id), (std::vector<int64_t>{2, 3, 5}));  // 2 -> 3, 3 -> 2, 3 -> 3
  EXPECT_EQ(list(edge_index_of(sub.graph)), (std::vector<int64_t>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(induced_subgraph(graph, Tensor::from<int32_t>({4}, {1})).graph.num_edges(), 0);
  EXPECT_EQ(induced_subgraph(graph, Tensor::empty({0}, DType::i64)).graph.num_dst(), 0);
  verify_errors({
      {[&] { induced_subgraph(graph, Tensor::from<int64_t>({1, 5}, {2})); },
       "InvalidArgument: induced_subgraph: nodes[1] is 5 but needs to be in [0, 5)"},
      {[&] { induced_subgraph(graph, Tensor::from<int64_t>({1, 2, 1}, {3})); },
       "InvalidArgument: induced_subgraph: nodes holds 1 twice, at positions 0 and 2"},
      {[&] { induced_subgraph(graph, ones({2})); },
       "InvalidArgument: induced_subgraph: nodes has dtype f32 but needs i32 or i64"},
  });
}

/// Case H20: graphs without nodes inside and at the end of a batch.
TEST(GraphBatch, ThereAndBack) {
  const Tensor none = Tensor::empty({2, 0}, DType::i64);
  const std::vector<Graph> graphs = {Graph::from_edge_index(Tensor::from<int64_t>({1, 0, 0, 1}, {2, 2}), 2),
                                     Graph::from_edge_index(none, 0), Graph::from_edge_index(none, 3),
                                     Graph::from_edge_index(Tensor::from<int64_t>({2, 0, 2, 1}, {2, 2}), 3),
                                     Graph::from_edge_index(none, 0)};
  const GraphBatch batch = GraphBatch::from_graphs(graphs);
  EXPECT_EQ(batch.num_graphs(), 5);
  EXPECT_EQ(list(batch.node_offsets()), (std::vector<int64_t>{0, 2, 2, 5, 8, 8}));
  EXPECT_EQ(list(batch.edge_offsets), (std::vector<int64_t>{0, 2, 2, 2, 4, 4}));
  EXPECT_EQ(list(edge_index_of(batch.graph)), (std::vector<int64_t>{1, 0, 7, 5, 0, 1, 7, 6}));
  for (size_t g = 0; g < graphs.size(); ++g)
    EXPECT_EQ(list(edge_index_of(batch.at(int64_t(g)))), list(edge_index_of(graphs[g]))) << g;
  EXPECT_EQ(GraphBatch::from_graphs({}).num_graphs(), 0);
  EXPECT_EQ(error_of([&] { batch.at(5); }), "InvalidArgument: graph_batch: graph 5 is outside [0, 5)");
}

TEST(JumpingKnowledge, Errors) {
  Generator random(1);
  const JumpingKnowledge jk(2, 3, random);
  const Tensor x = zeros({4, 2}), pair[] = {x, x};
  verify_errors({
      {[&] { jk(pair); }, "InvalidArgument: jumping_knowledge: 2 layers were given but the lstm was made for 3"},
      {[&] { JumpingKnowledge(1, 1, random); },
       "InvalidArgument: jumping_knowledge: 1 layers of 1 channels are too few for an lstm"},
      {[&] { JumpingKnowledge(JumpingKnowledge::Mode::lstm); },
       "InvalidArgument: jumping_knowledge: mode lstm needs its channels and layers"},
      {[&] { jk({}); }, "InvalidArgument: jumping_knowledge: no layers were given"},
  });
}

}  // namespace
}  // namespace tessera
