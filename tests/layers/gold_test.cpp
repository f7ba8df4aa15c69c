// Layers, norms and poolings against PyG's results.

#include "tessera/tests/support/gold.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/unary.h"
#include "tessera/layers/conv/appnp.h"
#include "tessera/layers/conv/gat_conv.h"
#include "tessera/layers/conv/gatv2_conv.h"
#include "tessera/layers/conv/gcn_conv.h"
#include "tessera/layers/conv/gin_conv.h"
#include "tessera/layers/conv/graph_conv.h"
#include "tessera/layers/conv/rgcn_conv.h"
#include "tessera/layers/conv/sage_conv.h"
#include "tessera/layers/conv/sg_conv.h"
#include "tessera/layers/conv/transformer_conv.h"
#include "tessera/layers/jumping_knowledge.h"
#include "tessera/layers/norm/batch_norm.h"
#include "tessera/layers/norm/graph_norms.h"
#include "tessera/layers/pool/readout.h"
#include "tessera/layers/pool/top_k_pooling.h"

namespace tessera {
namespace {

using namespace test;

constexpr int64_t kChannels = 6;

const auto plain = [](const auto& conv, const GoldGraph& g) { return conv(g.x, g.graph); };
const auto weighted = [](const auto& conv, const GoldGraph& g) { return conv(g.x, g.graph, g.edge_weight); };
const auto by_graph = [](const auto& norm, const GoldGraph& g) { return norm(g.x, g.nodes); };
const auto whole = [](const auto& norm, const GoldGraph& g) { return norm(g.x); };

const std::pair<const char*, Reduce> kAggregations[] = {
    {"mean", Reduce::mean}, {"sum", Reduce::sum}, {"max", Reduce::max}, {"min", Reduce::min}};

TEST(Gold, SageConv) {
  Generator random(1);
  for (const auto& [name, reduce] : kAggregations)
    verify_gold(std::string("sage_conv.") + name, SageConv(kChannels, 4, random, {.aggregate = reduce}), plain);
  verify_gold("sage_conv.wide", SageConv(kChannels, 9, random, {.project = true, .normalize = true}), plain);
  verify_gold("sage_conv.no_root", SageConv(kChannels, 4, random, {.root_weight = false, .bias = false}), plain);
}

TEST(Gold, GraphConv) {
  Generator random(1);
  for (const auto& [name, reduce] : kAggregations)
    verify_gold(std::string("graph_conv.") + name, GraphConv(kChannels, 4, random, {.aggregate = reduce}), weighted);
  verify_gold("graph_conv.wide", GraphConv(kChannels, 9, random, {.bias = false}), plain);
}

TEST(Gold, GcnConv) {
  Generator random(1);
  verify_gold("gcn_conv", GcnConv(kChannels, 4, random), plain);
  verify_gold("gcn_conv.weighted", GcnConv(kChannels, 9, random), weighted);
  verify_gold("gcn_conv.bare", GcnConv(kChannels, 4, random, {.normalize = false, .bias = false}), weighted);
}

/// Layers whose third argument is the edges' features, undefined where there are none.
const auto attributed = [](const auto& conv, const GoldGraph& g) { return conv(g.x, g.graph, g.edge_attr); };

template <class Conv, class Options>
void verify_gat(const std::string& name) {
  const auto verify = [&](const char* option, const Options& options) {
    Generator random(1);
    verify_gold(name + "." + option, Conv(kChannels, 3, random, options), attributed);
  };
  verify("plain", {});
  verify("heads", {.heads = 4});
  verify("mean", {.heads = 3, .concat = false});
  verify("edges", {.heads = 2, .edge_dim = 4});
  verify("no_loops", {.heads = 2, .negative_slope = 0.1, .add_self_loops = false});
  verify("edges_filled", {.heads = 2, .edge_dim = 4, .fill_value = 0.5});
  verify("edges_no_loops", {.heads = 2, .add_self_loops = false, .edge_dim = 4});
  verify("residual", {.heads = 2, .bias = false, .residual = true});
  verify("residual_mean", {.heads = 2, .concat = false, .residual = true});
}

TEST(Gold, GatConv) { verify_gat<GatConv, GatConvOptions>("gat_conv"); }

TEST(Gold, Gatv2Conv) {
  verify_gat<Gatv2Conv, Gatv2ConvOptions>("gatv2_conv");
  Generator random(1);
  verify_gold("gatv2_conv.shared", Gatv2Conv(kChannels, 3, random, {.heads = 2, .share_weights = true}), attributed);
}

TEST(Gold, TransformerConv) {
  const auto verify = [](const char* option, const TransformerConvOptions& options) {
    Generator random(1);
    verify_gold(std::string("transformer_conv.") + option, TransformerConv(kChannels, 3, random, options), attributed);
  };
  verify("plain", {});
  verify("heads", {.heads = 4});
  verify("mean", {.heads = 3, .concat = false});
  verify("edges", {.heads = 2, .edge_dim = 4});
  verify("beta", {.heads = 2, .beta = true});
  verify("beta_mean", {.heads = 2, .concat = false, .beta = true});
  verify("no_root", {.heads = 2, .beta = true, .bias = false, .root_weight = false});
}

TEST(Gold, RgcnConv) {
  const auto verify = [](const char* option, const RgcnConvOptions& options) {
    Generator random(1);
    verify_gold(std::string("rgcn_conv.") + option, RgcnConv(kChannels, 4, 3, random, options),
                [](const RgcnConv& conv, const GoldGraph& g) {
                  const int64_t n = g.x.dim(0), m = g.edge_index.dim(1);
                  const Tensor src = reshape(slice(g.edge_index, 0, 0, 1), Shape{m});
                  const Tensor dst = reshape(slice(g.edge_index, 0, 1, 2), Shape{m});
                  return conv(g.x, RelationalGraph::from_coo(src, dst, g.edge_type, n, n, 3));
                });
  };
  verify("plain", {});
  verify("bases", {.num_bases = 2});
  verify("blocks", {.num_blocks = 2});
  verify("no_root", {.root_weight = false, .bias = false});
  verify("sum", {.aggr = Reduce::sum});
}

TEST(Gold, SgConvAndAppnp) {
  Generator random(1);
  verify_gold("sg_conv", SgConv(kChannels, 4, random, {.hops = 3}), plain);
  verify_gold("sg_conv.weighted", SgConv(kChannels, 9, random, {.hops = 2}), weighted);
  verify_gold("appnp", [](const GoldGraph& g) { return appnp(g.x, g.graph, {}, {.hops = 4, .alpha = 0.2}); });
  verify_gold("appnp.weighted",
              [](const GoldGraph& g) { return appnp(g.x, g.graph, g.edge_weight, {.hops = 3, .alpha = 0.1}); });
}

/// torch.nn.Sequential(Linear, ReLU, [BatchNorm1d,] Linear[, ReLU, BatchNorm1d]): PyG's own indices are the names.
struct PlainMlp {
  Linear first, second;
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("0", self.first);
    visitor("2", self.second);
  }
};

struct NormedMlp {
  Linear first, second;
  BatchNorm1d norm, last;
  Tensor operator()(const Tensor& x) const { return last(relu(second(norm(relu(first(x)))))); }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("0", self.first);
    visitor("2", self.norm);
    visitor("3", self.second);
    visitor("5", self.last);
  }
};

TEST(Gold, GinConv) {
  Generator random(1);
  const PlainMlp mlp{Linear(kChannels, 5, random), Linear(5, 4, random)};
  verify_gold("gin_conv", GinConv<PlainMlp>(mlp), plain);
  verify_gold("gin_conv.train_eps", GinConv<PlainMlp>(mlp, {.train_eps = true}), plain);
  const NormedMlp normed{Linear(kChannels, 5, random), Linear(5, 4, random), BatchNorm1d(5), BatchNorm1d(4)};
  verify_gold("gin_conv.batch_norm", GinConv<NormedMlp>(normed), plain);
}

struct Jumping {
  JumpingKnowledge jk;
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("jk", self.jk);
  }
};

TEST(Gold, JumpingKnowledge) {
  Generator random(1);
  const auto call = [](const Jumping& module, const GoldGraph& g) {
    const Tensor squares = square(g.x), layers[] = {g.x, squares, add(g.x, squares)};
    return module.jk(layers);
  };
  verify_gold("jumping_knowledge.cat", Jumping{JumpingKnowledge(JumpingKnowledge::Mode::cat)}, call);
  verify_gold("jumping_knowledge.max", Jumping{JumpingKnowledge(JumpingKnowledge::Mode::max)}, call);
  verify_gold("jumping_knowledge.lstm", Jumping{JumpingKnowledge(kChannels, 3, random)}, call);
}

TEST(Gold, Norms) {
  verify_gold("batch_norm", BatchNorm(kChannels), whole);
  verify_gold("layer_norm.node", LayerNorm(kChannels, {.mode = LayerNormOptions::Mode::node}), whole);
  verify_gold("layer_norm.graph", LayerNorm(kChannels), by_graph);
  verify_gold("layer_norm.one_graph", LayerNorm(kChannels), whole);
  verify_gold("graph_norm", GraphNorm(kChannels), by_graph);
  verify_gold("instance_norm", InstanceNorm(kChannels, 1e-5, true), by_graph);
  verify_gold("pair_norm", [](const GoldGraph& g) { return pair_norm(g.x, g.nodes, {.scale = 1.5}); });
  verify_gold("pair_norm.individually",
              [](const GoldGraph& g) { return pair_norm(g.x, g.nodes, {.scale_individually = true}); });
  verify_gold("message_norm", MessageNorm(true),
              [](const MessageNorm& norm, const GoldGraph& g) { return norm(g.x, shift(square(g.x), 0.1)); });
}

TEST(Gold, Readouts) {
  Generator random(1);
  verify_gold("global_sum_pool", [](const GoldGraph& g) { return global_sum_pool(g.x, g.nodes); });
  verify_gold("global_mean_pool", [](const GoldGraph& g) { return global_mean_pool(g.x, g.nodes); });
  verify_gold("global_max_pool", [](const GoldGraph& g) { return global_max_pool(g.x, g.nodes); });
  verify_gold("attentional_aggregation",
              AttentionalAggregation<Linear, Linear>{Linear(kChannels, 1, random), Linear(kChannels, 4, random)}, by_graph);
}

TEST(Gold, Poolings) {
  Generator random(1);
  const auto pooled = [](const auto& pooling, const GoldGraph& g) {
    const Pooled out = pooling(g.x, g.graph, g.nodes);
    return GoldParts{{"x", out.x},
                     {"edge_index", edge_index_of(out.graph)},
                     {"batch", cast(out.nodes.segment_of_row(), DType::i64)},
                     {"perm", out.perm}};
  };
  verify_gold("top_k_pooling", TopKPooling(kChannels, random, {.ratio = 0.6}), pooled);
  verify_gold("top_k_pooling.count", TopKPooling(kChannels, random, {.ratio = 2, .multiplier = 1.5}), pooled);
  verify_gold("top_k_pooling.min_score", TopKPooling(kChannels, random, {.min_score = 0.2}), pooled);
  const GraphConv scorer(kChannels, 1, random);
  verify_gold("sag_pooling", SagPooling<GraphConv>(scorer, random, {.ratio = 0.5}), pooled);
  verify_gold("sag_pooling.gcn", SagPooling<GcnConv>(GcnConv(kChannels, 1, random), random, {.ratio = 0.8, .multiplier = 2}),
              pooled);
  verify_gold("sag_pooling.min_score", SagPooling<GraphConv>(scorer, random, {.min_score = 0.3}), pooled);
}

}  // namespace
}  // namespace tessera
