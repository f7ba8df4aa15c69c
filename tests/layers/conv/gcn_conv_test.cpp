#include "tessera/layers/conv/gcn_conv.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera {
namespace {

using namespace test;

Graph make_graph(const EdgeList& list) {
  return Graph::from_coo(Tensor::from(list.src, {list.num_edges()}), Tensor::from(list.dst, {list.num_edges()}),
                         list.num_nodes, list.num_nodes);
}

/// The dense matrix D^-1/2 (A + I) D^-1/2 with the last loop of a node counting, then x W^T through it.
Array gcn_reference(const EdgeList& list, const Array& x, const Array& weight, const Array& bias, const Array* edge_weight) {
  const int64_t n = list.num_nodes, in = x.dim(1), out_width = weight.dim(0);
  Array adjacency(Shape{n, n});
  std::vector<Real> loop(size_t(n), Real(1));
  for (int64_t e = 0; e < list.num_edges(); ++e) {
    const int32_t s = list.src[size_t(e)], d = list.dst[size_t(e)];
    const Real w = edge_weight != nullptr ? (*edge_weight)[e] : Real(1);
    if (s == d)
      loop[size_t(s)] = w;
    else
      adjacency(d, s) += w;
  }
  for (int64_t i = 0; i < n; ++i) adjacency(i, i) += loop[size_t(i)];
  std::vector<Real> root(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    Real degree = 0;
    for (int64_t j = 0; j < n; ++j) degree += adjacency(i, j);
    root[size_t(i)] = Real(1) / sqrt(degree);
  }
  Array out(Shape{n, out_width});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t f = 0; f < out_width; ++f) {
      Real sum = bias[f];
      for (int64_t j = 0; j < n; ++j) {
        if (adjacency(i, j).value == 0) continue;
        Real h = 0;
        for (int64_t k = 0; k < in; ++k) h += x(j, k) * weight(f, k);
        sum += root[size_t(i)] * adjacency(i, j) * root[size_t(j)] * h;
      }
      out(i, f) = sum;
    }
  return out;
}

void verify_gcn(const EdgeList& list, int64_t in, int64_t out, bool weighted) {
  // Transforming first keeps x and the weight; aggregating first keeps A x in place of x.
  Input x = real({list.num_nodes, in});
  if (in >= out) x.saved();
  std::vector<Input> inputs = {x, real({out, in}).saved(), real({out})};
  if (weighted) inputs.push_back(real({list.num_edges()}, 0.25, 2));
  verify({.name = "gcn_conv " + list.name + " " + std::to_string(in) + " to " + std::to_string(out),
          .inputs = inputs,
          .call =
              [=](const Tensors& t) {
                GcnConv conv;
                conv.lin.weight = t[1];
                conv.bias = t[2];
                return conv(t[0], make_graph(list), weighted ? t[3] : Tensor());
              },
          .reference =
              [=](const Arrays& a) { return gcn_reference(list, a[0], a[1], a[2], weighted ? &a[3] : nullptr); },
          .k = 24,
          .grad_k = 32});
}

TEST(GcnConv, EveryGraphUnweighted) {
  for (const EdgeList& list : graphs())
    if (list.num_nodes <= 64) verify_gcn(list, 3, 2, false);
}

TEST(GcnConv, NarrowToWideAggregatesFirst) { verify_gcn(graph("self_loops"), 2, 5, false); }

TEST(GcnConv, EdgeWeights) {
  for (const char* name : {"self_loops", "duplicates", "path", "no_edges"}) verify_gcn(graph(name), 3, 2, true);
}

/// Cases of people who could not tell what became of a loop that was there: its weight 3 is kept.
TEST(GcnConv, ALoopThatIsThereKeepsItsWeight) {
  const EdgeList list{"loop of weight 3", 2, {0, 0, 1}, {0, 1, 0}};
  GcnConv conv;
  conv.lin.weight = Tensor::from<float>({1, 0, 0, 1}, {2, 2});
  const Tensor out = conv(Tensor::from<float>({1, 0, 0, 1}, {2, 2}), make_graph(list), Tensor::from<float>({3, 1, 1}, {3}));
  const float expected[] = {0.75f, 0.3535534f, 0.3535534f, 0.5f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(out.data<float>()[i], expected[i], 1e-6);
}

TEST(GcnConv, StateAndInitialValues) {
  Generator generator(1);
  const GcnConv conv(6, 4, generator);
  const StateDict state = state_dict(conv);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state.at("lin.weight").shape(), (Shape{4, 6}));
  EXPECT_EQ(state.at("bias").shape(), (Shape{4}));
  for (const float b : conv.bias.span<float>()) EXPECT_EQ(b, 0);
}

TEST(GcnConv, Errors) {
  Generator generator(1);
  const GcnConv conv(3, 2, generator);
  const Graph graph = make_graph({"pair", 2, {0}, {1}});
  verify_errors({
      {[&] { conv(zeros({2}), graph); }, "InvalidArgument: gcn_conv: x has shape [2] but needs two dimensions"},
      {[&] { conv(zeros({5, 3}), graph); }, "InvalidArgument: gcn_conv: x has 5 rows but the graph has 2 nodes"},
      {[&] { conv(zeros({2, 4}), graph); }, "InvalidArgument: linear: x has shape [2, 4] but needs to be [N, 3]"},
      {[&] { conv(zeros({2, 3}), graph, Tensor::from<float>({-2}, {1})); },
       "InvalidArgument: gcn_norm: node 1 has degree -1 but needs at least 0 for its square root"},
  });
}

}  // namespace
}  // namespace tessera
