#include "tessera/layers/pool/asap_pooling.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/layers/conv/gcn_conv.h"
#include "tessera/layers/conv/graph_conv.h"
#include "tessera/layers/pool/readout.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/rings.h"

namespace tessera::test {
namespace {

TEST(LeConv, EqualsPyG) {
  Generator random(1);
  verify_gold("le_conv", LeConv(6, 4, random), [](const auto& conv, const GoldGraph& g) { return conv(g.x, g.graph); });
  verify_gold("le_conv.weighted", LeConv(6, 4, random, false),
              [](const auto& conv, const GoldGraph& g) { return conv(g.x, g.graph, g.edge_weight); });
}

TEST(AsapPooling, EqualsPyG) {
  const auto call = [](const auto& pooling, const GoldGraph& g) {
    const Coarsened out = pooling(g.x, g.graph, g.nodes, g.edge_weight);
    GoldParts parts{{"x", out.x},
                    {"edge_index", edge_index_of(out.graph)},
                    {"batch", cast(out.nodes.segment_of_row(), DType::i64)},
                    {"perm", out.perm}};
    if (out.edge_weight.defined()) parts.emplace("edge_weight", out.edge_weight);
    return parts;
  };
  Generator random(1);
  verify_gold("asap_pooling.plain", AsapPooling<>(6, random), call);
  verify_gold("asap_pooling.gnn", AsapPooling<GraphConv>(6, GraphConv(6, 6, random), random, {.ratio = 0.7}), call);
  verify_gold("asap_pooling.loops", AsapPooling<>(6, random, {.ratio = 3, .add_self_loops = true}), call);
  verify_gold("asap_pooling.gcn", AsapPooling<GcnConv>(6, GcnConv(6, 6, random), random, {.ratio = 0.6}), call);
}

/// Two poolings, the second of weighted edges, whose weights carry gradients of the first.
struct Net {
  GraphConv conv1, conv2;
  AsapPooling<GraphConv> pool1;
  AsapPooling<> pool2;
  Linear lin;
  bool training = true;

  explicit Net(Generator& random)
      : conv1(6, 8, random),
        conv2(8, 8, random),
        pool1(8, GraphConv(8, 8, random), random, {.ratio = 0.6, .dropout = 0.2}),
        pool2(8, random, {.ratio = 0.5}),
        lin(8, 2, random) {}
  Tensor operator()(const Rings& data, Generator& random) const {
    const Tensor ones = full(Shape{data.batch.graph.num_edges()}, 1);
    const Coarsened one = pool1(relu(conv1(data.x, data.batch.graph)), data.batch.graph, data.batch.nodes, random, ones);
    const Coarsened two =
        pool2(relu(conv2(one.x, one.graph, one.edge_weight)), one.graph, one.nodes, random, one.edge_weight);
    return lin(global_mean_pool(two.x, two.nodes));
  }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv1", self.conv1);
    visitor("conv2", self.conv2);
    visitor("pool1", self.pool1);
    visitor("pool2", self.pool2);
    visitor("lin", self.lin);
  }
};

TEST(AsapPooling, TrainsTheSameWithAnyThreads) {
  const Rings data(60, 6);
  expect_same_for_all_threads([&] {
    Generator random(5);
    Net net(random);
    return train_on(data, net, 80, [&] { return net(data, random); });
  });
}

TEST(AsapPooling, StateNames) {
  Generator random(2);
  const StateDict state = state_dict(AsapPooling<GraphConv>(4, GraphConv(4, 4, random), random));
  EXPECT_EQ(state.size(), 13u);
  EXPECT_EQ(state.at("lin.weight").shape(), (Shape{4, 4}));
  EXPECT_EQ(state.at("att.weight").shape(), (Shape{1, 8}));
  EXPECT_EQ(state.at("gnn_score.lin3.bias").shape(), (Shape{1}));
  EXPECT_EQ(state.at("gnn_intra_cluster.lin_root.weight").shape(), (Shape{4, 4}));
  EXPECT_EQ(state.at("select.weight").shape(), (Shape{1, 1}));
}

TEST(AsapPooling, Errors) {
  Generator random(2);
  const Rings data(5, 4);
  const int64_t n = data.x.dim(0);
  const AsapPooling<> dropping(4, random, {.dropout = 0.5});
  verify_errors({
      {[&] { dropping(data.x, data.batch.graph, data.batch.nodes); },
       "InvalidArgument: asap_pooling: dropout 0.5 in training needs a generator"},
      {[&] {
         dropping(zeros({2, 4}), data.batch.graph, data.batch.nodes, random);
       },
       "InvalidArgument: asap_pooling: x has shape [2, 4] but the graph has " + std::to_string(n) + " nodes and nodes has " +
           std::to_string(n) + " rows"},
      {[&] {
         LeConv(4, 1, random)(zeros({2, 4}), data.batch.graph);
       },
       "InvalidArgument: le_conv: x has shape [2, 4] but the graph has " + std::to_string(n) + " sources and " +
           std::to_string(n) + " destinations"},
  });
}

}  // namespace
}  // namespace tessera::test
