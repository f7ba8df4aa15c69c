#include "tessera/layers/conv/pna_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

using A = PnaAggregator;
using S = PnaScaler;
const std::vector<A> kAll = {A::sum, A::mean, A::min, A::max, A::var, A::std};
const std::vector<S> kScalers = {S::identity, S::amplification, S::attenuation, S::linear, S::inverse_linear};

Tensor degrees() { return Tensor::from<int64_t>({2, 3, 4, 1, 0, 1}, {6}); }

TEST(PnaConv, EqualsPyG) {
  const auto verify = [](const char* option, const PnaConvOptions& options) {
    Generator random(1);
    verify_gold(std::string("pna_conv.") + option, PnaConv(4, 2, degrees(), random, options),
                [](const PnaConv& conv, const GoldGraph& g) { return conv(g.x, g.graph, g.edge_attr); });
  };
  verify("plain", {});
  verify("every", {.aggregators = kAll, .scalers = kScalers, .train_norm = true});
  verify("one", {.aggregators = {A::max}, .scalers = {S::linear}});
  verify("edges", {.aggregators = kAll, .edge_dim = 3});
  verify("towers", {.scalers = {S::identity, S::attenuation}, .towers = 2});
  verify("divided", {.scalers = {S::inverse_linear, S::amplification},
                     .towers = 2,
                     .post_layers = 2,
                     .divide_input = true,
                     .act = Activation::elu});
  verify("deep", {.pre_layers = 2, .post_layers = 3});
  verify("deep_edges",
         {.scalers = {S::identity, S::linear}, .edge_dim = 3, .towers = 2, .pre_layers = 3, .divide_input = true});
}

TEST(PnaConv, DegreeHistogram) {
  const Graph a = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 2, 0, 3, 3, 3, 1}, {2, 4}), 5);
  const Graph none = Graph::from_edge_index(Tensor::from<int64_t>({}, {2, 0}), 2);
  EXPECT_EQ(degree_histogram(a).to_vector<int64_t>(), (std::vector<int64_t>{3, 1, 0, 1}));
  const Graph both[] = {a, none};
  EXPECT_EQ(degree_histogram(both).to_vector<int64_t>(), (std::vector<int64_t>{5, 1, 0, 1}));
  EXPECT_EQ(degree_histogram(std::span<const Graph>()).to_vector<int64_t>(), (std::vector<int64_t>{0}));
  Generator random(1);
  PnaConv conv(4, 2, degree_histogram(a), random);
  EXPECT_FLOAT_EQ(conv.avg_deg_lin.data<float>()[0], 4.0f / 5);
  EXPECT_FLOAT_EQ(conv.avg_deg_log.data<float>()[0], float((std::log(2.0) + std::log(4.0)) / 5));
  EXPECT_EQ(parameters(conv).size(), 6u);  // the means are none
}

/// On hubs, loops and parallel edges: the same bits for every thread count.
TEST(PnaConv, DoesNotDependOnThreads) {
  const Restore restore;
  for (const EdgeList& list : graphs())
    for (const int pre_layers : {1, 2}) {
      SCOPED_TRACE(list.name);
      const Graph graph = TwoSided(list).graph();
      Generator random(2);
      PnaConv conv(5, 4, degrees(), random,
                   {.aggregators = kAll, .scalers = kScalers, .towers = 2, .pre_layers = pre_layers, .train_norm = true});
      const Tensor x = uniform({list.num_nodes, 5}, -1, 1, random), seed = uniform({list.num_nodes, 4}, -1, 1, random);
      std::vector<Tensor> one;
      for (const int count : {1, 2, 3}) {
        set_threads(count);
        std::vector<Tensor> trained = parameters(conv), got;
        for (Tensor& tensor : trained) tensor.clear_grad();
        Tensor in = clone(x).set_requires_grad();
        const Tensor out = conv(in, graph);
        backward(out, seed);
        got = {out.detach(), in.grad()};
        for (const Tensor& tensor : trained) got.push_back(clone(tensor.grad()));
        if (count == 1) one = got;
        for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], one[i])) << i << " " << count;
      }
    }
}

TEST(PnaConv, State) {
  Generator random(1);
  const PnaConv conv(6, 4, degrees(), random, {.edge_dim = 2, .towers = 2, .pre_layers = 2, .divide_input = true});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(conv)) names.push_back(name + " " + to_text(tensor.shape()));
  EXPECT_EQ(names,
            (std::vector<std::string>{"aggr_module.avg_deg_lin [1]", "aggr_module.avg_deg_log [1]", "edge_encoder.bias [3]",
                                      "edge_encoder.weight [3, 2]", "lin.bias [4]", "lin.weight [4, 4]",
                                      "post_nns.0.0.bias [2]", "post_nns.0.0.weight [2, 39]", "post_nns.1.0.bias [2]",
                                      "post_nns.1.0.weight [2, 39]", "pre_nns.0.0.bias [3]", "pre_nns.0.0.weight [3, 9]",
                                      "pre_nns.0.2.bias [3]", "pre_nns.0.2.weight [3, 3]", "pre_nns.1.0.bias [3]",
                                      "pre_nns.1.0.weight [3, 9]", "pre_nns.1.2.bias [3]", "pre_nns.1.2.weight [3, 3]"}));
}

TEST(PnaConv, Errors) {
  Generator random(1);
  const Graph pair = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2);
  const PnaConv plain(4, 2, degrees(), random), edges(4, 2, degrees(), random, {.edge_dim = 3});
  verify_errors({
      {[&] {
         plain(zeros({2, 3}), pair);
       },
       "InvalidArgument: pna_conv: x has shape [2, 3] but needs [2, 4], and the graph has 2 destinations"},
      {[&] {
         plain(zeros({2, 4}), pair, zeros({2, 3}));
       },
       "InvalidArgument: pna_conv: edge_attr was given but the layer was made without edge_dim"},
      {[&] {
         edges(zeros({2, 4}), pair);
       },
       "InvalidArgument: pna_conv: edge_attr was not given but the layer was made with edge_dim"},
      {[&] {
         edges(zeros({2, 4}), pair, zeros({2, 2}));
       },
       "InvalidArgument: pna_conv: edge_attr has shape [2, 2] but needs [2, 3]"},
      {[&] { PnaConv(4, 0, degrees(), random); },
       "InvalidArgument: pna_conv: in 4, out 0, towers 1, pre_layers 1 and post_layers 1 need to be 1 or more"},
      {[&] { PnaConv(4, 3, degrees(), random, {.towers = 2}); },
       "InvalidArgument: pna_conv: out 3 needs to be a multiple of 2 towers"},
      {[&] { PnaConv(5, 4, degrees(), random, {.towers = 2, .divide_input = true}); },
       "InvalidArgument: pna_conv: in 5 needs to be a multiple of 2 towers to be divided"},
      {[&] { PnaConv(4, 2, degrees(), random, {.edge_dim = -2}); },
       "InvalidArgument: pna_conv: edge_dim is -2 but needs to be 0 or more"},
      {[&] { PnaConv(4, 2, degrees(), random, {.aggregators = {}}); },
       "InvalidArgument: pna_conv: 0 aggregators and 3 scalers were given but it needs 1 or more of each"},
      {[&] { PnaConv(4, 2, zeros({3}), random); },
       "InvalidArgument: pna_conv: degrees needs to be a histogram, i64 of one dimension"},
      {[&] { PnaConv(4, 2, Tensor::from<int64_t>({7}, {1}), random); },
       "InvalidArgument: pna_conv: degrees has no node with an edge, so there is no mean degree to scale by"},
  });
}

}  // namespace
}  // namespace tessera::test
