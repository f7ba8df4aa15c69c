#include "tessera/layers/conv/gen_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

using Aggregate = GenConvOptions::Aggregate;
using Norm = GenConvOptions::Norm;

TEST(GenConv, EqualsPyG) {
  const auto verify = [](const char* option, const GenConvOptions& options, int64_t out = 4) {
    Generator random(1);
    verify_gold(std::string("gen_conv.") + option, GenConv(4, out, random, options),
                [](const GenConv& conv, const GoldGraph& g) { return conv(g.x, g.graph, g.edge_attr); });
  };
  verify("softmax", {});
  verify("softmax_t", {.t = 0.5, .learn_t = true, .norm = Norm::layer, .bias = true}, 3);
  verify("softmax_sg", {.aggregate = Aggregate::softmax_sg, .t = 2, .norm = Norm::layer});
  verify("edges", {.learn_t = true, .norm = Norm::layer});
  verify("edge_dim", {.t = 0.7, .norm = Norm::layer, .edge_dim = 3}, 3);
  verify("edges_sg", {.aggregate = Aggregate::softmax_sg, .norm = Norm::layer});
  verify("message_norm", {.message_norm = true, .learn_message_scale = true, .norm = Norm::layer});
  verify("message_norm_wider", {.message_norm = true, .norm = Norm::instance}, 5);
  verify("power", {.aggregate = Aggregate::powermean, .p = 2, .norm = Norm::layer});
  verify("power_p", {.aggregate = Aggregate::powermean, .p = 1.5, .learn_p = true, .norm = Norm::layer});
  verify("power_one", {.aggregate = Aggregate::powermean, .norm = Norm::none, .layers = 1});
  verify("mean", {.aggregate = Aggregate::mean, .norm = Norm::instance, .layers = 3, .expansion = 1});
  verify("sum", {.aggregate = Aggregate::sum, .norm = Norm::none, .layers = 3, .bias = true});
  verify("max", {.aggregate = Aggregate::max, .norm = Norm::layer});
  verify("min", {.aggregate = Aggregate::min, .norm = Norm::layer});
}

/// Sent once for each node or once for each edge, of small scores or of large ones (then for nodes a head for each column,
/// 128 at a time): the same, gradients too, and the same bits for every thread count.
TEST(GenConv, MessagesByNodeAndByEdgeAgree) {
  const Restore restore;
  for (const TwoSided& list : two_sided_graphs())
    for (const auto& [width, t] : {std::pair{int64_t{8}, 1.5}, {int64_t{8}, 40.0}, {int64_t{130}, 40.0}}) {
      if (list.num_edges() > 1000 && width > 8) continue;
      SCOPED_TRACE(list.name);
      const Graph graph = list.graph();
      Generator random(2);
      const GenConv conv(width, width, random, {.t = t, .learn_t = true, .norm = Norm::layer});
      const Tensor src = uniform({list.num_src, width}, -2, 2, random), dst = uniform({list.num_dst, width}, -2, 2, random);
      const Tensor seed = uniform({list.num_dst, width}, -1, 1, random);
      const auto run = [&](bool by_edge) {
        Tensor x = clone(src).set_requires_grad(), learned = conv.t;
        learned.clear_grad();
        const Tensor out = conv(x, dst, graph, by_edge ? zeros({list.num_edges(), width}) : Tensor());
        backward(out, seed);
        return std::vector<Tensor>{out.detach(), x.grad(), clone(learned.grad())};
      };
      for (const bool by_edge : {false, true}) {
        set_threads(1);
        const std::vector<Tensor> one = run(by_edge);
        for (const int count : {2, 3}) {
          set_threads(count);
          const std::vector<Tensor> more = run(by_edge);
          for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(same_bits(one[i], more[i])) << i << " " << count;
        }
      }
      const std::vector<Tensor> nodes = run(false), edges = run(true);
      for (size_t k = 0; k < nodes.size(); ++k) {
        double largest = 1;
        for (const float v : edges[k].span<float>()) largest = std::max(largest, std::fabs(double(v)));
        for (int64_t i = 0; i < nodes[k].numel(); ++i)
          ASSERT_NEAR(nodes[k].data<float>()[i], edges[k].data<float>()[i], 1e-5 * largest) << k << " " << i;
      }
    }
}

TEST(GenConv, State) {
  Generator random(1);
  const GenConv conv(5, 4, random, {.learn_t = true, .message_norm = true, .layers = 3, .bias = true, .edge_dim = 2});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_dict(conv)) names.push_back(name + " " + to_text(tensor.shape()));
  EXPECT_EQ(names, (std::vector<std::string>{"aggr_module.t [1]",
                                             "lin_dst.bias [4]",
                                             "lin_dst.weight [4, 5]",
                                             "lin_edge.bias [4]",
                                             "lin_edge.weight [4, 2]",
                                             "lin_src.bias [4]",
                                             "lin_src.weight [4, 5]",
                                             "mlp.0.bias [8]",
                                             "mlp.0.weight [8, 4]",
                                             "mlp.1.bias [8]",
                                             "mlp.1.num_batches_tracked []",
                                             "mlp.1.running_mean [8]",
                                             "mlp.1.running_var [8]",
                                             "mlp.1.weight [8]",
                                             "mlp.4.bias [8]",
                                             "mlp.4.weight [8, 8]",
                                             "mlp.5.bias [8]",
                                             "mlp.5.num_batches_tracked []",
                                             "mlp.5.running_mean [8]",
                                             "mlp.5.running_var [8]",
                                             "mlp.5.weight [8]",
                                             "mlp.8.bias [4]",
                                             "mlp.8.weight [4, 8]",
                                             "msg_norm.scale [1]"}));
}

TEST(GenConv, Errors) {
  Generator random(1);
  const Graph pair = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 1}, {2, 2}), 2);
  const GenConv conv(4, 3, random, {.edge_dim = 2});
  verify_errors({
      {[&] {
         conv(zeros({2, 3}), pair);
       },
       "InvalidArgument: gen_conv: x has shape [2, 3] but needs [2, 4]"},
      {[&] {
         conv(zeros({2, 4}), zeros({3, 4}), pair);
       },
       "InvalidArgument: gen_conv: x_dst has shape [3, 4] but needs [2, 4]"},
      {[&] {
         conv(zeros({2, 4}), pair, zeros({2, 3}));
       },
       "InvalidArgument: gen_conv: edge_attr has shape [2, 3] but needs [2, 2]"},
      {[&] { GenConv(4, 0, random); },
       "InvalidArgument: gen_conv: in 4, out 0, layers 2 and expansion 2 need to be 1 or more"},
      {[&] { GenConv(4, 4, random, {.edge_dim = -1}); },
       "InvalidArgument: gen_conv: edge_dim is -1 but needs to be 0 or more"},
      {[&] { GenConv(4, 4, random, {.aggregate = Aggregate::softmax_sg, .learn_t = true}); },
       "InvalidArgument: gen_conv: learn_t needs aggregate softmax"},
      {[&] { GenConv(4, 4, random, {.learn_p = true}); }, "InvalidArgument: gen_conv: learn_p needs aggregate powermean"},
      {[&] { GenConv(4, 4, random, {.aggregate = Aggregate::powermean, .p = 0}); },
       "InvalidArgument: gen_conv: p is 0 but a power mean needs another power"},
  });
}

}  // namespace
}  // namespace tessera::test
