// GineConv, EdgeConv, Gcn2Conv and DeepGcnLayer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/layers/conv/deep_gcn_layer.h"
#include "tessera/layers/conv/edge_conv.h"
#include "tessera/layers/conv/gcn2_conv.h"
#include "tessera/layers/conv/gcn_conv.h"
#include "tessera/layers/conv/gine_conv.h"
#include "tessera/layers/norm/node_norm.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

/// torch.nn.Sequential(Linear, ReLU, Linear).
struct Sequential {
  Linear first, second;
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("0", self.first);
    visitor("2", self.second);
  }
};

const auto attributed = [](const auto& conv, const GoldGraph& g) { return conv(g.x, g.graph, g.edge_attr); };

Graph pair() { return Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2); }

TEST(GineConv, EqualsPyG) {
  Generator random(1);
  const Sequential nn{Linear(6, 5, random), Linear(5, 4, random)};
  verify_gold("gine_conv", GineConv<Sequential>(nn), attributed);
  verify_gold("gine_conv.edge_dim", GineConv<Sequential>(nn, 6, 3, random, {.train_eps = true}), attributed);
}

/// Gradients of a hub, of loops and of parallel edges are the same for every thread count, and those of a sum of terms.
TEST(GineConv, SumOverEveryGraph) {
  const Restore restore;
  for (const TwoSided& list : two_sided_graphs()) {
    SCOPED_TRACE(list.name);
    const Graph graph = list.graph();
    Generator random(2);
    const Tensor x = uniform({list.num_src, 17}, -1, 1, random), edge = uniform({list.num_edges(), 17}, -1, 1, random);
    const Tensor seed = uniform({list.num_dst, 17}, -1, 1, random);
    std::vector<Tensor> one;
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      Tensor a = clone(x).set_requires_grad(), b = clone(edge).set_requires_grad();
      const Tensor out = gine_sum(graph, a, b);
      backward(out, seed);
      const std::vector<Tensor> got = {out.detach(), a.grad(), b.grad()};
      if (count == 1) one = got;
      for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], one[i])) << i << " " << count;
    }
    std::vector<double> sum(size_t(list.num_dst)), terms(sum.size()), gradient(size_t(list.num_src)),
        weight(gradient.size());
    for (int64_t e = 0; e < list.num_edges(); ++e) {
      const size_t s = size_t(list.src[size_t(e)]), d = size_t(list.dst[size_t(e)]);
      const double value = double(x.data<float>()[s * 17 + 16]) + edge.data<float>()[e * 17 + 16];
      sum[d] += std::max(value, 0.0);
      terms[d] += std::fabs(value);
      const double slope = value > 0 ? seed.data<float>()[d * 17 + 16] : 0;
      EXPECT_EQ(one[2].data<float>()[e * 17 + 16], float(slope));
      gradient[s] += slope;
      weight[s] += std::fabs(slope);
    }
    constexpr double kEps = 6e-8;
    for (size_t d = 0; d < sum.size(); ++d)
      EXPECT_NEAR(one[0].data<float>()[d * 17 + 16], sum[d], 8 * kEps * (1 + terms[d])) << d;
    for (size_t s = 0; s < weight.size(); ++s)
      EXPECT_NEAR(one[1].data<float>()[s * 17 + 16], gradient[s], 8 * kEps * (1 + weight[s])) << s;
  }
}

TEST(EdgeConv, EqualsPyG) {
  Generator random(1);
  const Sequential nn{Linear(12, 5, random), Linear(5, 4, random)};
  const std::pair<const char*, Reduce> all[] = {
      {"max", Reduce::max}, {"min", Reduce::min}, {"mean", Reduce::mean}, {"sum", Reduce::sum}};
  for (const auto& [name, reduce] : all)
    verify_gold(std::string("edge_conv.") + name, EdgeConv<Sequential>(nn, {.aggregate = reduce}),
                [](const EdgeConv<Sequential>& conv, const GoldGraph& g) { return conv(g.x, g.graph); });
}

TEST(Gcn2Conv, EqualsPyG) {
  Generator random(1);
  const auto call = [](const Gcn2Conv& conv, const GoldGraph& g) { return conv(g.x, square(g.x), g.graph, g.edge_weight); };
  verify_gold("gcn2_conv", Gcn2Conv(6, random, {.alpha = 0.1, .theta = 0.5, .layer = 2}), call);
  verify_gold("gcn2_conv.unshared", Gcn2Conv(6, random, {.alpha = 0.2, .theta = 0.5, .layer = 3, .shared_weights = false}),
              call);
  verify_gold("gcn2_conv.bare", Gcn2Conv(6, random, {.alpha = 0.3, .normalize = false}), call);
}

TEST(DeepGcnLayer, EqualsPyG) {
  Generator random(1);
  using Block = DeepGcnLayerOptions::Block;
  const std::pair<const char*, Block> all[] = {
      {"res_plus", Block::res_plus}, {"res", Block::res}, {"dense", Block::dense}, {"plain", Block::plain}};
  for (const auto& [name, block] : all)
    verify_gold(std::string("deep_gcn_layer.") + name,
                DeepGcnLayer<GcnConv, NodeNorm>(GcnConv(6, 6, random), NodeNorm(NodeNorm::Kind::layer_node, 6),
                                                {.block = block, .act = Activation::elu}),
                [](const auto& layer, const GoldGraph& g) {
                  Generator unused(1);
                  return layer(g.x, g.graph, unused);
                });
}

TEST(DeepGcnLayer, DropoutIsOfTraining) {
  Generator random(3);
  using Block = DeepGcnLayerOptions::Block;
  for (const Block block : {Block::res_plus, Block::res, Block::dense, Block::plain}) {
    DeepGcnLayer<GcnConv, NodeNorm> layer(GcnConv(8, 8, random), NodeNorm(NodeNorm::Kind::layer_node, 8),
                                          {.block = block, .dropout = 0.5});
    const Tensor x = uniform({2, 8}, -1, 1, random);
    EXPECT_FALSE(same_bits(layer(x, pair(), random).detach(), layer(x, pair(), random).detach()));
    eval(layer);
    EXPECT_TRUE(same_bits(layer(x, pair(), random).detach(), layer(x, pair(), random).detach()));
  }
}

TEST(EdgeMessageConvs, Errors) {
  Generator random(1);
  const GineConv<Sequential> gine(Sequential{Linear(6, 5, random), Linear(5, 4, random)});
  const Gcn2Conv gcn2(4, random);
  verify_errors({
      {[&] {
         gine(zeros({3, 6}), pair(), zeros({2, 6}));
       },
       "InvalidArgument: gine_conv: x has shape [3, 6] but the graph has 2 nodes"},
      {[&] {
         gine(zeros({2, 6}), pair(), {});
       },
       "InvalidArgument: gine_conv: edge_attr was not given"},
      {[&] {
         gine(zeros({2, 6}), pair(), zeros({2, 3}));
       },
       "InvalidArgument: gine_conv: edge_attr has shape [2, 3] but needs [2, 6]; a layer made with edge_dim takes other "
       "widths"},
      {[&] {
         gcn2(zeros({2, 5}), zeros({2, 5}), pair());
       },
       "InvalidArgument: gcn2_conv: x has shape [2, 5] but needs [2, 4]"},
      {[&] {
         gcn2(zeros({2, 4}), zeros({3, 4}), pair());
       },
       "InvalidArgument: gcn2_conv: x_0 has shape [3, 4] but x has [2, 4]"},
      {[&] { Gcn2Conv(0, random); }, "InvalidArgument: gcn2_conv: channels is 0 but needs to be 1 or more"},
      {[&] { Gcn2Conv(4, random, {.alpha = 1.5}); }, "InvalidArgument: gcn2_conv: alpha is 1.5 but needs to be in [0, 1]"},
      {[&] { Gcn2Conv(4, random, {.theta = 0.5}); },
       "InvalidArgument: gcn2_conv: theta 0.5 and layer 0 were given but it needs both above 0, or neither"},
  });
}

}  // namespace
}  // namespace tessera::test
