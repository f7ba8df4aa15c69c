#include "tessera/layers/pool/diff_pool.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/layers/conv/dense_conv.h"
#include "tessera/layers/pool/dense_batch.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/rings.h"

namespace tessera::test {
namespace {

const auto dense = [](const auto& conv, const GoldGraph& g) {
  const DenseBatch batch = to_dense_batch(g.x, g.nodes);
  return conv(batch.x, to_dense_adj(g.graph, g.nodes, g.edge_weight), batch.mask);
};

template <class Conv>
struct Named {
  Conv conv;
  Tensor operator()(const Tensor& x, const Tensor& adj, const Tensor& mask) const { return conv(x, adj, mask); }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("conv", self.conv);
  }
};

TEST(DenseConv, EqualsPyG) {
  Generator random(1);
  verify_gold("dense_conv.gcn", Named<DenseGcnConv>{DenseGcnConv(6, 4, random)}, dense);
  verify_gold("dense_conv.gcn_improved", Named<DenseGcnConv>{DenseGcnConv(6, 4, random, {.improved = true, .bias = false})},
              dense);
  verify_gold("dense_conv.sage", Named<DenseSageConv>{DenseSageConv(6, 4, random)}, dense);
  verify_gold("dense_conv.sage_normalize", Named<DenseSageConv>{DenseSageConv(6, 4, random, {.normalize = true})}, dense);
}

struct Net {
  DenseGcnConv embed;
  DenseSageConv pool;
  bool training = true;

  DiffPooled operator()(const Tensor& x, const Tensor& adj, const Tensor& mask) const {
    return dense_diff_pool(embed(x, adj, mask), adj, pool(x, adj, mask), mask);
  }
  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("embed", self.embed);
    visitor("pool", self.pool);
  }
};

TEST(DiffPool, EqualsPyG) {
  Generator random(1);
  verify_gold("dense_diff_pool", Net{DenseGcnConv(6, 4, random), DenseSageConv(6, 3, random)},
              [](const Net& net, const GoldGraph& g) {
                const DiffPooled out = dense(net, g);
                return GoldParts{{"x", out.x}, {"adj", out.adj}, {"link", out.link_loss}, {"entropy", out.entropy_loss}};
              });
}

/// Results and gradients of padded and unpadded batches; the seeds of the four results differ.
TEST(DiffPool, UnpaddedEqualsDense) {
  Generator random(4);
  const EdgeList& odd = graph("duplicates");
  const Graph parts[] = {Graph::from_coo(Tensor::from(odd.src, {odd.num_edges()}), Tensor::from(odd.dst, {odd.num_edges()}),
                                         odd.num_nodes, odd.num_nodes),
                         Rings(6, 1).batch.graph, Graph::from_coo(zeros({0}, DType::i32), zeros({0}, DType::i32), 0, 0)};
  const GraphBatch batch = GraphBatch::from_graphs(parts);
  const int64_t nodes = batch.graph.num_src(), edges = batch.graph.num_edges();
  struct Run {
    DiffPooled out;
    Tensor x, s, weight;
  };
  const auto run = [&](bool weighted, bool normalize, const auto& call) {
    Generator same(9);
    Run r{{},
          uniform({nodes, 5}, -1, 1, same, DType::f64).set_requires_grad(),
          uniform({nodes, 3}, -2, 2, same, DType::f64).set_requires_grad(),
          uniform({edges}, 0.5, 2, same, DType::f64).set_requires_grad()};
    r.out = call(r, weighted ? r.weight : Tensor(), normalize);
    Tensor loss = add(scale(r.out.link_loss, 3), scale(r.out.entropy_loss, 2));
    for (const Tensor& part : {r.out.x, r.out.adj})
      loss = add(loss, sum(mul(part, uniform(part.shape(), -1, 1, same, DType::f64))));
    backward(loss);
    return r;
  };
  const auto close = [](const Tensor& a, const Tensor& b, const char* what) {
    ASSERT_EQ(a.defined(), b.defined()) << what;
    if (!a.defined()) return;
    ASSERT_EQ(a.shape(), b.shape()) << what;
    for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<double>()[i], b.data<double>()[i], 1e-11) << what << " " << i;
  };
  for (const bool weighted : {true, false})
    for (const bool normalize : {true, false}) {
      const Run a = run(weighted, normalize, [&](const Run& r, const Tensor& weight, bool divided) {
        return diff_pool(r.x, r.s, batch.graph, batch.nodes, weight, divided);
      });
      const Run b = run(weighted, normalize, [&](const Run& r, const Tensor& weight, bool divided) {
        const DenseBatch padded = to_dense_batch(r.x, batch.nodes);
        const Tensor adj = to_dense_adj(batch.graph, batch.nodes, weight.defined() ? weight : ones({edges}, DType::f64));
        return dense_diff_pool(padded.x, adj, to_dense_batch(r.s, batch.nodes).x, padded.mask, divided);
      });
      close(a.out.x, b.out.x, "x");
      close(a.out.adj, b.out.adj, "adj");
      close(a.out.link_loss, b.out.link_loss, "link loss");
      close(a.out.entropy_loss, b.out.entropy_loss, "entropy loss");
      close(a.x.grad(), b.x.grad(), "gradient of x");
      close(a.s.grad(), b.s.grad(), "gradient of s");
      close(a.weight.grad(), b.weight.grad(), "gradient of weight");
    }
}

TEST(DiffPool, TrainsTheSameWithAnyThreads) {
  const Rings data(40, 6);
  const DenseBatch batch = to_dense_batch(data.x, data.batch.nodes);
  const Tensor adj = to_dense_adj(data.batch.graph, data.batch.nodes);
  expect_same_for_all_threads([&] {
    Generator random(5);
    Net net{DenseGcnConv(6, 2, random), DenseSageConv(6, 3, random)};
    return train_on(data, net, 60, [&] {
      const DiffPooled out = net(batch.x, adj, batch.mask);
      return add(sum(out.x, 1), add(out.link_loss, out.entropy_loss));
    });
  });
}

/// Case H20: graphs without nodes stay, within and behind; nodes beyond `max_nodes` are left out with their edges.
TEST(DenseBatch, PaddingAndTruncation) {
  const SegmentPlan nodes = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 2, 2, 3, 3}, {5}));
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3, 1});
  const DenseBatch all = to_dense_batch(x, nodes);
  EXPECT_EQ(all.x.shape(), (Shape{4, 2, 1}));
  EXPECT_EQ(all.x.to_vector<float>(), (std::vector<float>{1, 2, 0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(all.mask.to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 1, 0, 0, 0}));
  const DenseBatch first = to_dense_batch(x, nodes, 1);
  EXPECT_EQ(first.x.to_vector<float>(), (std::vector<float>{1, 0, 3, 0}));

  const Graph graph =
      Graph::from_coo(Tensor::from<int32_t>({0, 0, 1, 2}, {4}), Tensor::from<int32_t>({1, 1, 1, 2}, {4}), 3, 3);
  const Tensor weight = Tensor::from<float>({1, 2, 4, 8}, {4});
  EXPECT_EQ(to_dense_adj(graph, nodes, weight).to_vector<float>(),
            (std::vector<float>{0, 3, 0, 4, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(to_dense_adj(graph, nodes, {}, 1).to_vector<float>(), (std::vector<float>{0, 0, 1, 0}));
  const SegmentPlan mixed = SegmentPlan::from_index(Tensor::from<int32_t>({1, 0, 0}, {3}), 2);
  EXPECT_EQ(to_dense_batch(x, mixed).x.to_vector<float>(), (std::vector<float>{2, 3, 1, 0}));
}

TEST(DiffPool, Errors) {
  Generator random(2);
  const Tensor x = zeros({1, 2, 3}), adj = zeros({1, 2, 2}), s = zeros({1, 2, 4});
  const DenseGcnConv gcn(3, 2, random);
  const DenseSageConv sage(3, 2, random);
  const SegmentPlan two = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 1, 2}, {3}));
  const Graph joined = Graph::from_coo(Tensor::from<int32_t>({0}, {1}), Tensor::from<int32_t>({1}, {1}), 2, 2);
  verify_errors({
      {[&] {
         dense_diff_pool(zeros({2, 3}), adj, s);
       },
       "InvalidArgument: dense_diff_pool: x, adj and s have shapes [2, 3], [1, 2, 2] and [1, 2, 4] but need three "
       "dimensions"},
      {[&] {
         dense_diff_pool(x, zeros({1, 2, 3}), s);
       },
       "InvalidArgument: dense_diff_pool: adj has shape [1, 2, 3] but needs [1, 2, 2]"},
      {[&] {
         dense_diff_pool(x, adj, zeros({1, 3, 4}));
       },
       "InvalidArgument: dense_diff_pool: s has shape [1, 3, 4] but needs [1, 2, K]"},
      {[&] {
         dense_diff_pool(x, adj, s, zeros({2, 2}));
       },
       "InvalidArgument: dense_diff_pool: mask has shape [2, 2] but needs [1, 2]"},
      {[&] {
         gcn(zeros({2, 3}), adj);
       },
       "InvalidArgument: dense_gcn_conv: x has shape [2, 3] but needs three dimensions"},
      {[&] {
         gcn(x, zeros({2, 2, 2}));
       },
       "InvalidArgument: dense_gcn_conv: adj has shape [2, 2, 2] but needs [1, 2, 2]"},
      {[&] { sage(x, adj, zeros({2})); }, "InvalidArgument: dense_sage_conv: mask has shape [2] but needs [1, 2]"},
      {[&] {
         to_dense_batch(zeros({3, 1}), two);
       },
       "InvalidArgument: to_dense_batch: x needs to be [2, C], a row for each of nodes"},
      {[&] {
         to_dense_batch(zeros({2, 1}), two, -1);
       },
       "InvalidArgument: to_dense_batch: max_nodes is -1 but needs to be 0 or more"},
      {[&] {
         to_dense_batch(zeros({2, 1}), {});
       },
       "InvalidArgument: to_dense_batch: nodes is undefined"},
      {[&] {
         to_dense_batch(zeros({2, 1}), two, int64_t{1} << 31);
       },
       "InvalidArgument: to_dense_batch: 2 graphs of 2147483648 nodes are more than 2^31 - 1"},
      {[&] { to_dense_adj(joined, two); },
       "InvalidArgument: to_dense_adj: edge 0 joins node 0 of graph 0 to node 1 of graph 1"},
      {[&] { to_dense_adj(joined, two, zeros({2})); },
       "InvalidArgument: to_dense_adj: edge_weight has shape [2] but needs to be [1]"},
      {[&] {
         to_dense_adj(joined, SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 3}, {2})));
       },
       "InvalidArgument: to_dense_adj: the graph needs to be square, with 3 nodes"},
  });
}

}  // namespace
}  // namespace tessera::test
