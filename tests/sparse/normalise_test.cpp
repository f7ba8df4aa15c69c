#include "tessera/sparse/normalise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tessera/core/autograd.h"
#include "tessera/core/error.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/edge_lists.h"

namespace tessera {
namespace {

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Graph graph_of(const std::vector<int32_t>& src, const std::vector<int32_t>& dst, int64_t nodes) {
  return Graph::from_coo(Tensor::from(src, Shape{int64_t(src.size())}), Tensor::from(dst, Shape{int64_t(dst.size())}), nodes,
                         nodes);
}

/// The normalised matrix, row by destination: aggregating the unit vectors reads it out.
std::vector<double> matrix(const GcnNorm& norm, DType dtype) {
  const int64_t n = norm.graph.num_src();
  Tensor unit = zeros(Shape{n, n}, dtype);
  with_float(dtype, "test", [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) unit.mutable_data<T>()[i * n + i] = 1;
  });
  const Tensor out = spmm(norm.graph, unit, Reduce::sum, norm.factors());
  return with_float(dtype, "test", [&]<class T>() { return std::vector<double>(out.data<T>(), out.data<T>() + n * n); });
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], bound) << i;
}

/// Case H18.
TEST(GcnNorm, NegativeAndCancellingWeights) {
  const Graph pair = graph_of({0}, {1}, 2);
  EXPECT_EQ(error_of([&] { gcn_norm(pair, Tensor::from<float>({-2}, Shape{1})); }),
            "gcn_norm: node 1 has degree -1 but needs at least 0 for its square root");
  expect_near(matrix(gcn_norm(pair, Tensor::from<float>({-1}, Shape{1})), DType::f32), {1, 0, 0, 0}, 0);
  const Graph isolated = graph_of({0, 1}, {1, 0}, 3);
  expect_near(matrix(gcn_norm(isolated), DType::f32), {.5, .5, 0, .5, .5, 0, 0, 0, 1}, 1e-7);
}

/// Case H19.
TEST(GcnNorm, LoopsThatAreThereKeepTheirWeight) {
  const Graph graph = graph_of({0, 0, 1}, {0, 1, 0}, 2);
  const Tensor weight = Tensor::from<double>({3, 1, 1}, Shape{3});
  expect_near(matrix(gcn_norm(graph, weight), DType::f64), {0.75, 0.3535534, 0.3535534, 0.5}, 1e-7);
  const LoopedGraph looped = add_remaining_self_loops(graph, weight);
  // Ids: the two other edges, then the loops of nodes 0 and 1.
  EXPECT_EQ(looped.weight.to_vector<double>(), (std::vector<double>{1, 1, 3, 1}));
  EXPECT_EQ(looped.source_id.to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 0, -1}));
}

TEST(GcnNorm, ImprovedLoopsWeighTwo) {
  const Graph graph = graph_of({0, 1}, {1, 0}, 2);
  const double third = 1.0 / 3;
  expect_near(matrix(gcn_norm(graph, {}, {.add_self_loops = true, .loop_weight = 2, .dtype = DType::f64}), DType::f64),
              {2 * third, third, third, 2 * third}, 1e-15);
}

TEST(GcnNorm, WithoutLoopsZeroDegreesGiveZero) {
  const Graph graph = graph_of({0, 1}, {1, 2}, 3);
  expect_near(matrix(gcn_norm(graph, {}, {.add_self_loops = false, .loop_weight = 1, .dtype = DType::f64}), DType::f64),
              {0, 0, 0, 0, 0, 0, 0, 1, 0}, 0);
}

/// The looped graph is the one that a stable sort of PyG's edge list would give.
TEST(AddRemainingSelfLoops, EqualsTheGraphOfTheList) {
  for (int threads : {1, 3}) {
    set_threads(threads);
    for (const char* name : {"without loops", "with loops"}) {
      SCOPED_TRACE(name);
      test::EdgeList list = test::random_list(name, 500, 500, 9000, 31);
      if (name[4] == 'o')
        for (size_t e = 0; e < list.src.size(); ++e)
          if (list.src[e] == list.dst[e]) list.src[e] = (list.src[e] + 1) % 500;
      if (name[4] == ' ')
        for (size_t e = 0; e < list.src.size(); e += 17) list.src[e] = list.dst[e];
      test::EdgeList expected{"", 500, 500, {}, {}};
      std::vector<float> weights = test::random_values<float>(list.count(), 32), expected_weights;
      std::map<int32_t, float> loops;
      for (size_t e = 0; e < list.src.size(); ++e) {
        if (list.src[e] == list.dst[e]) {
          loops[list.src[e]] = weights[e];
        } else {
          expected.add(list.src[e], list.dst[e]);
          expected_weights.push_back(weights[e]);
        }
      }
      for (int32_t i = 0; i < 500; ++i) {
        expected.add(i, i);
        expected_weights.push_back(loops.count(i) ? loops[i] : 1.0f);
      }
      const LoopedGraph looped = add_remaining_self_loops(list.graph(), Tensor::from(weights, Shape{list.count()}));
      const Graph graph = expected.graph();
      EXPECT_EQ(looped.graph.rowptr().to_vector<int64_t>(), graph.rowptr().to_vector<int64_t>());
      EXPECT_EQ(looped.graph.col().to_vector<int32_t>(), graph.col().to_vector<int32_t>());
      EXPECT_EQ(looped.graph.edge_id().to_vector<int64_t>(), graph.edge_id().to_vector<int64_t>());
      EXPECT_EQ(looped.weight.to_vector<float>(), expected_weights);
    }
  }
  set_threads(2);
}

/// Central differences of a random linear function of the normalised weights.
TEST(GcnNorm, GradientGoesThroughTheDegrees) {
  const Graph graph = graph_of({0, 1, 2, 2, 3, 0, 1, 1}, {1, 2, 0, 2, 1, 3, 1, 1}, 5);
  Tensor weight = Tensor::from<double>({.5, 1.5, .7, 2, .3, 1.1, .9, 1.3}, Shape{8});
  const auto norm = [&](const Tensor& w) { return gcn_norm(graph, w).weight; };
  weight.set_requires_grad();
  const Tensor out = norm(weight);
  const std::vector<double> seed = test::random_values<double>(out.numel(), 33);
  backward(out, Tensor::from(seed, out.shape()));
  const auto value = [&](size_t e, double step) {
    std::vector<double> w = weight.to_vector<double>();
    w[e] += step;
    const Tensor result = norm(Tensor::from(w, Shape{8}));
    double sum = 0;
    for (size_t i = 0; i < seed.size(); ++i) sum += seed[i] * result.data<double>()[i];
    return sum;
  };
  for (size_t e = 0; e < 8; ++e)
    EXPECT_NEAR(weight.grad().data<double>()[e], (value(e, 1e-6) - value(e, -1e-6)) / 2e-6, 1e-8) << e;
  EXPECT_EQ(weight.grad().data<double>()[6], 0);  // a loop that the later one replaces
}

TEST(GcnNorm, Errors) {
  const Graph wide = Graph::from_coo(Tensor::from<int32_t>({2}, Shape{1}), Tensor::from<int32_t>({0}, Shape{1}), 3, 1);
  EXPECT_EQ(error_of([&] { gcn_norm(wide); }),
            "gcn_norm: the graph has 3 sources and 1 destinations but needs as many of both");
  EXPECT_EQ(error_of([&] { gcn_norm(Graph()); }), "gcn_norm: the graph is undefined");
  const Graph graph = graph_of({0}, {1}, 2);
  EXPECT_EQ(error_of([&] { gcn_norm(graph, ones(Shape{2})); }),
            "gcn_norm: the weights have shape [2] but the graph has 1 edges, so they need [1]");
  EXPECT_EQ(error_of([&] { gcn_norm(graph, zeros(Shape{1}, DType::i32)); }),
            "gcn_norm: dtype i32 is not supported, use f32 or f64");
}

}  // namespace
}  // namespace tessera
