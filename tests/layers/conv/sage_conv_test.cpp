#include "tessera/layers/conv/sage_conv.h"

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/layers/conv/graph_conv.h"
#include "tessera/sparse/graph_batch.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

Graph no_edges(int64_t nodes) { return Graph::from_edge_index(Tensor::from<int64_t>({}, {2, 0}), nodes); }

/// Case H04: nodes without edges have themselves and the bias; alone, and in a batch between graphs with edges.
TEST(SageConv, NodesWithoutEdges) {
  Generator random(1);
  SageConv conv(4, 1, random);
  conv.lin_l.weight = full({1, 4}, 1).set_requires_grad();
  conv.lin_r.weight = full({1, 4}, 1).set_requires_grad();
  conv.lin_l.bias = full({1}, 0.5).set_requires_grad();
  const Tensor rows = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});

  Tensor x = clone(rows).set_requires_grad();
  const Tensor out = conv(x, no_edges(2));
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{10.5, 26.5}));
  backward(sum(out));
  EXPECT_EQ(conv.lin_l.weight.grad().to_vector<float>(), (std::vector<float>(4, 0)));
  EXPECT_EQ(conv.lin_r.weight.grad().to_vector<float>(), (std::vector<float>{6, 8, 10, 12}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>(8, 1)));
  EXPECT_EQ(conv(slice(rows, 0, 1, 2), no_edges(1)).to_vector<float>(), (std::vector<float>{26.5}));

  const Graph loop = Graph::from_edge_index(Tensor::from<int64_t>({0, 0}, {2, 1}), 1);
  const Graph graphs[] = {loop, no_edges(2), loop};
  const Tensor batched = Tensor::from<float>({1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 3, 0, 0}, {4, 4});
  EXPECT_EQ(conv(batched, GraphBatch::from_graphs(graphs).graph).to_vector<float>(),
            (std::vector<float>{2.5, 10.5, 26.5, 6.5}));
}

TEST(SageConv, BipartiteWithoutRoot) {
  Generator random(1);
  SageConv conv(1, 1, random, {.aggregate = Reduce::sum, .bias = false});
  conv.lin_l.weight = full({1, 1}, 2);
  conv.lin_r.weight = full({1, 1}, 10);
  const Graph graph = Graph::from_coo(Tensor::from<int32_t>({0, 1, 2}, {3}), Tensor::from<int32_t>({0, 0, 1}, {3}), 3, 2);
  const Tensor src = Tensor::from<float>({1, 2, 3}, {3, 1}), dst = Tensor::from<float>({1, 2}, {2, 1});
  EXPECT_EQ(conv(src, dst, graph).to_vector<float>(), (std::vector<float>{16, 26}));
  EXPECT_EQ(conv(src, {}, graph).to_vector<float>(), (std::vector<float>{6, 6}));
}

TEST(SageAndGraphConv, Errors) {
  Generator random(1);
  const SageConv sage(4, 3, random);
  const GraphConv graph_conv(4, 3, random);
  verify_errors({
      {[&] {
         sage(zeros({3, 4}), no_edges(2));
       },
       "InvalidArgument: sage_conv: x has shape [3, 4] but the graph has 2 sources"},
      {[&] {
         sage(zeros({2, 4}), zeros({3, 4}), no_edges(2));
       },
       "InvalidArgument: sage_conv: x_dst has shape [3, 4] but the graph has 2 destinations"},
      {[&] {
         graph_conv(zeros({3, 4}), no_edges(2));
       },
       "InvalidArgument: graph_conv: x has shape [3, 4] but the graph has 2 nodes"},
      {[&] { GraphConv(4, 3, random, {.aggregate = Reduce::mul}); },
       "InvalidArgument: graph_conv: reduce mul is not one of sum, mean, max and min"},
  });
}

}  // namespace
}  // namespace tessera::test
