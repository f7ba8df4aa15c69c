#include "tessera/sparse/normalise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

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
            "InvalidArgument: gcn_norm: node 1 has degree -1 but needs at least 0 for its square root");
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
  const Restore restore;
  for (const int threads : {1, 3}) {
    set_threads(threads);
    for (const bool has_loops : {false, true}) {
      TwoSided list = random_two_sided(500, 500, 9000, 31);
      for (size_t e = 0; e < list.src.size(); ++e) {
        if (list.src[e] == list.dst[e]) list.src[e] = (list.src[e] + 1) % 500;
        if (has_loops && e % 17 == 0) list.src[e] = list.dst[e];
      }
      TwoSided expected("", 500, 500, {}, {});
      const std::vector<float> weights = random_seed(Shape{9000}, DType::f32, 32).to_vector<float>();
      std::vector<float> expected_weights;
      std::map<int32_t, float> loops;
      for (size_t e = 0; e < list.src.size(); ++e) {
        if (list.src[e] == list.dst[e]) {
          loops[list.src[e]] = weights[e];
        } else {
          expected.src.push_back(list.src[e]);
          expected.dst.push_back(list.dst[e]);
          expected_weights.push_back(weights[e]);
        }
      }
      for (int32_t i = 0; i < 500; ++i) {
        expected.src.push_back(i);
        expected.dst.push_back(i);
        expected_weights.push_back(loops.count(i) ? loops[i] : 1.0f);
      }
      const LoopedGraph looped = add_remaining_self_loops(list.graph(), Tensor::from(weights, Shape{9000}));
      const Graph graph = expected.graph();
      EXPECT_EQ(looped.graph.rowptr().to_vector<int64_t>(), graph.rowptr().to_vector<int64_t>());
      EXPECT_EQ(looped.graph.col().to_vector<int32_t>(), graph.col().to_vector<int32_t>());
      EXPECT_EQ(looped.graph.edge_id().to_vector<int64_t>(), graph.edge_id().to_vector<int64_t>());
      EXPECT_EQ(looped.weight.to_vector<float>(), expected_weights);
    }
  }
}

/// Edges with duplicates and loops (two on node 1, of which the later counts).
const std::vector<int32_t> kSrc = {0, 1, 2, 2, 3, 0, 1, 1}, kDst = {1, 2, 0, 2, 1, 3, 1, 1};

TEST(AddRemainingSelfLoops, GradientGoesToTheLoopThatCounts) {
  const Graph graph = graph_of(kSrc, kDst, 5);
  verify({.name = "add_remaining_self_loops",
          .inputs = {real(Shape{8})},
          .call = [=](const Tensors& in) { return add_remaining_self_loops(graph, in[0], 2).weight; },
          .reference =
              [](const Arrays& in) {
                Array out(Shape{10});
                for (int64_t i = 0; i < 10; ++i) out[i] = Real(2);
                for (int64_t i = 0; const int64_t e : {0, 1, 2, 4, 5}) out[i++] = in[0][e];
                out[5 + 1] = in[0][7];
                out[5 + 2] = in[0][3];
                return out;
              },
          .k = 0,
          .grad_k = 0});
}

TEST(GcnNorm, GradientGoesThroughTheDegrees) {
  const Graph graph = graph_of(kSrc, kDst, 5);
  for (const bool loops : {true, false})  // without, the weights that are saved are the input itself
    verify({.name = "gcn_norm",
            .inputs = {loops ? real(Shape{8}, 0.5, 1.5) : real(Shape{8}, 0.5, 1.5).saved()},
            .call = [=](const Tensors& in) { return gcn_norm(graph, in[0], {.add_self_loops = loops}).weight; },
            .reference =
                [=](const Arrays& in) {
                  std::vector<int32_t> src, dst;
                  std::vector<Real> weight;
                  for (size_t e = 0; e < 8; ++e)
                    if (!loops || kSrc[e] != kDst[e]) {
                      src.push_back(kSrc[e]);
                      dst.push_back(kDst[e]);
                      weight.push_back(in[0][int64_t(e)]);
                    }
                  for (int32_t i = 0; loops && i < 5; ++i) {
                    src.push_back(i);
                    dst.push_back(i);
                    weight.push_back(i == 1 ? in[0][7] : i == 2 ? in[0][3] : Real(1));
                  }
                  std::vector<Real> degree(5);
                  for (size_t e = 0; e < src.size(); ++e) degree[size_t(dst[e])] += weight[e];
                  Array out(Shape{int64_t(src.size())});
                  for (size_t e = 0; e < src.size(); ++e) {
                    const Real &s = degree[size_t(src[e])], &d = degree[size_t(dst[e])];
                    if (s.value != 0 && d.value != 0) out[int64_t(e)] = weight[e] / sqrt(s) / sqrt(d);
                  }
                  return out;
                },
            .k = 6,
            .grad_k = 20});
}

TEST(GcnNorm, Errors) {
  const Graph wide = TwoSided("", 3, 1, {2}, {0}).graph(), graph = graph_of({0}, {1}, 2);
  verify_errors({{[&] { gcn_norm(wide); },
                  "InvalidArgument: gcn_norm: the graph has 3 sources and 1 destinations but needs as many of both"},
                 {[&] { gcn_norm(Graph()); }, "InvalidArgument: gcn_norm: the graph is undefined"},
                 {[&] { gcn_norm(graph, ones(Shape{2})); },
                  "InvalidArgument: gcn_norm: the weights have shape [2] but the graph has 1 edges, so they need [1]"},
                 {[&] { gcn_norm(graph, zeros(Shape{1}, DType::i32)); },
                  "Unsupported: gcn_norm: dtype i32 is not supported, use f32 or f64"}});
}

TEST(SelfLoops, AreMadeOnce) {
  const Graph graph = TwoSided(test::graph("self_loops")).graph();
  EXPECT_TRUE(with_self_loops(graph).graph.is(with_self_loops(graph).graph));
  EXPECT_TRUE(gcn_norm(graph).graph.is(with_self_loops(graph).graph));
}

/// Edges that are no loops, then each node's loop: the mean of what comes in from others, or a number.
Case looped_features_case(const TwoSided& g, const std::optional<double>& fill) {
  const Graph graph = g.graph();
  return {.name = "looped_features " + g.name,
          .inputs = {real(Shape{g.num_edges(), 3})},
          .call = [=](const Tensors& in) { return looped_features(graph, in[0], fill); },
          .reference =
              [=](const Arrays& in) {
                std::vector<int64_t> kept, degree(size_t(g.num_dst));
                for (int64_t e = 0; e < g.num_edges(); ++e)
                  if (g.src[size_t(e)] != g.dst[size_t(e)]) {
                    kept.push_back(e);
                    ++degree[size_t(g.dst[size_t(e)])];
                  }
                const int64_t others = int64_t(kept.size());
                Array out(Shape{others + g.num_dst, 3});
                for (int64_t i = 0; i < others; ++i)
                  for (int64_t j = 0; j < 3; ++j) {
                    const int64_t d = g.dst[size_t(kept[size_t(i)])];
                    out(i, j) = in[0](kept[size_t(i)], j);
                    out(others + d, j) += out(i, j) / Real(double(degree[size_t(d)]));
                  }
                for (int64_t d = 0; fill && d < g.num_dst; ++d)
                  for (int64_t j = 0; j < 3; ++j) out(others + d, j) = Real(*fill);
                return out;
              },
          .k = double(g.largest_degree()) / 4 + 2,
          .grad_k = 4};
}

TEST(SelfLoops, FeaturesOfLoopedEdges) {
  for (const char* name : {"empty", "one_node", "no_edges", "empty_ends", "self_loops", "duplicates", "star"})
    for (const std::optional<double>& fill : {std::optional<double>(), std::optional<double>(0.5)})
      verify(looped_features_case(TwoSided(test::graph(name)), fill));
  verify_errors(
      {{[] {
          looped_features(TwoSided(test::graph("path")).graph(), zeros(Shape{3, 2}));
        },
        "InvalidArgument: looped_features: features have shape [3, 2] but 32 edges need [32, D]"},
       {[] { with_self_loops(TwoSided("", 2, 3, {0}, {0}).graph()); },
        "InvalidArgument: with_self_loops: the graph has 2 sources and 3 destinations but needs as many of both"}});
}

}  // namespace
}  // namespace tessera::test
