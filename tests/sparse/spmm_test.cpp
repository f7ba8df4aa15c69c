#include "tessera/sparse/spmm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/spmm_cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

TEST(Spmm, EqualsTheReferenceOnEveryGraph) {
  for (const TwoSided& g : two_sided_graphs())
    for (const Reduce reduce : {Reduce::sum, Reduce::mean})
      for (const int given : {0, kWeight | 0, kSrcScale | kDstScale, kWeight | kSrcScale | kDstScale})
        verify(spmm_case(g, g.num_edges() > 1000 ? 3 : 5, reduce, given));
}

/// Every number of vectors and every kind of tail of every instruction set.
TEST(Spmm, EqualsTheReferenceAtEveryWidth) {
  const TwoSided g(graph("duplicates"));
  for (int64_t width = 0; width <= 70; ++width) {
    verify(spmm_case(g, width, Reduce::sum, 0));
    if (width % 3 == 0) verify(spmm_case(g, width, Reduce::mean, kWeight));
    if (width % 3 == 1) verify(spmm_case(g, width, Reduce::sum, kSrcScale));
  }
  for (const int64_t width :
       {79, 80, 95, 96, 100, 112, 127, 128, 129, 144, 160, 176, 192, 208, 224, 240, 256, 257, 300, 602})
    verify(spmm_case(g, width, Reduce::sum, 0));
}

TEST(Spmm, HubsOfEveryWidth) {
  for (const int64_t width : {1, 8, 17, 64})
    for (const int given : {0, kWeight | kDstScale}) verify(spmm_case(TwoSided(graph("hub")), width, Reduce::mean, given));
}

/// Bias and relu, as a row is written: rows of every kind, also past the caches.
TEST(Spmm, Epilogue) {
  for (const TwoSided& g : two_sided_graphs())
    for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max})
      for (const int given : {kBias | 0, kRelu | 0, kWeight | kDstScale | kBias | kRelu})
        verify(spmm_case(g, 3, reduce, given));
  for (const int64_t width : {0, 1, 8, 17, 64, 100, 129})
    for (const Reduce reduce : {Reduce::sum, Reduce::max})
      verify(spmm_case(TwoSided(graph("duplicates")), width, reduce, kBias | kRelu));
}

TEST(Spmm, EpilogueOfLargeResults) {
  const TwoSided g = random_two_sided(60, 80000, 100, 2);  // a result of 20 MB, nearly all empty rows
  const Tensor x = random_seed(Shape{60, 64}, DType::f32), bias = random_seed(Shape{64}, DType::f32, 2);
  SpmmOptions options;
  const Tensor plain = spmm(g.graph(), x);
  options.bias = bias;
  options.activation = Activation::relu;
  const Tensor out = spmm(g.graph(), x, Reduce::sum, options);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const float expected = std::max(plain.data<float>()[i] + bias.data<float>()[i % 64], 0.0f);
    ASSERT_EQ(out.data<float>()[i], expected) << i;
  }
}

/// NaN passes a relu, forwards; nothing passes it backwards.
TEST(Spmm, ReluOfNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Graph graph = TwoSided("", 2, 2, {0, 1}, {0, 1}).graph();
  for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
    Tensor x = Tensor::from<float>({nan, -1, 0, 2}, Shape{2, 2});
    x.set_requires_grad();
    SpmmOptions options;
    options.activation = Activation::relu;
    const Tensor out = spmm(graph, x, reduce, options);
    EXPECT_TRUE(std::isnan(out.data<float>()[0]));
    EXPECT_EQ(out.data<float>()[1], 0);
    EXPECT_EQ(out.data<float>()[3], 2);
    backward(out, ones(out.shape()));
    EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0, 0, 1}));
  }
}

/// A graph of the same edges between nodes that lie `apart`, so that x and the result are large. Kernels then fetch rows
/// ahead and store past the caches, but the sums are the same, bit by bit.
TEST(Spmm, LargeArraysGiveTheSameBits) {
  const Restore restore;
  const TwoSided small = random_two_sided(300, 200, 8000, 2);
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 8, 12, 16, 64, 100, 240}) {
      for (const int64_t megabytes : {3, 20}) {
        const int64_t apart = (megabytes << 20) / (width * 4 * 200);
        TwoSided large = small;
        large.num_src *= apart;
        large.num_dst *= apart;
        for (size_t e = 0; e < small.src.size(); ++e) {
          large.src[e] *= int32_t(apart);
          large.dst[e] *= int32_t(apart);
        }
        const Tensor x = random_seed(Shape{small.num_src, width}, DType::f32),
                     weight = random_seed(Shape{8000}, DType::f32, 2);
        Tensor far = zeros(Shape{large.num_src, width});
        for (int64_t s = 0; s < small.num_src; ++s)
          std::copy_n(x.data<float>() + s * width, width, far.mutable_data<float>() + s * apart * width);
        for (const Tensor& w : {Tensor(), weight}) {
          const SpmmOptions options{.weight = w, .src_scale = {}, .dst_scale = {}};
          const Tensor near = spmm(small.graph(), x, Reduce::mean, options);
          const Tensor out = spmm(large.graph(), far, Reduce::mean, options);
          ASSERT_EQ(out.dim(0), small.num_dst * apart);
          for (int64_t d = 0; d < large.num_dst; ++d) {
            const float* row = out.data<float>() + d * width;
            if (d % apart == 0)
              ASSERT_TRUE(std::equal(row, row + width, near.data<float>() + d / apart * width)) << name(isa) << width;
            else
              ASSERT_EQ(std::count(row, row + width, 0.0f), width) << name(isa) << width;
          }
        }
      }
    }
  }
}

/// Case H05.
TEST(Spmm, ValuesOfOneNumber) {
  const Graph graph =
      Graph::from_csr(Tensor::from<int64_t>({0, 2, 2, 3, 4}, Shape{5}), Tensor::from<int32_t>({1, 2, 0, 2}, Shape{4}), 3);
  const Tensor x = Tensor::from<float>({1, 10, 2, 20, 3, 30}, Shape{3, 2});
  for (const Tensor& weight : {Tensor(), ones(Shape{4})}) {
    const SpmmOptions options{.weight = weight, .src_scale = {}, .dst_scale = {}};
    EXPECT_EQ(spmm(graph, x, Reduce::sum, options).to_vector<float>(), (std::vector<float>{5, 50, 0, 0, 1, 10, 3, 30}));
    EXPECT_EQ(spmm(graph, x, Reduce::mean, options).to_vector<float>(), (std::vector<float>{2.5, 25, 0, 0, 1, 10, 3, 30}));
  }
}

/// Case H04: the neighbour term of a graph without edges is zero, and so are its gradients.
TEST(Spmm, MeanWithoutEdgesIsZero) {
  const Graph graph = TwoSided("", 2, 2, {}, {}).graph();
  Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, Shape{2, 4});
  x.set_requires_grad();
  const Tensor out = spmm(graph, x, Reduce::mean);
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(8, 0));
  backward(out, ones(out.shape()));
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(8, 0));
}

TEST(Spmm, NonFiniteValuesStayInTheirRowsAndColumns) {
  const Restore restore;
  const float inf = std::numeric_limits<float>::infinity();
  const Graph graph = TwoSided("", 3, 4, {0, 1, 2}, {0, 1, 2}).graph();
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {3, 17, 33}) {
      Tensor x = ones(Shape{3, width});
      x.mutable_data<float>()[2 * width - 1] = inf;  // last column of node 1
      const Tensor plain = spmm(graph, x);
      for (int64_t i = 0; i < 4 * width; ++i)
        EXPECT_EQ(plain.data<float>()[i], i == 2 * width - 1 ? inf : i < 3 * width ? 1.0f : 0.0f);
      // An empty row is zero whatever its scale.
      const Tensor scaled = spmm(graph, x, Reduce::sum, {.weight = {}, .src_scale = {}, .dst_scale = full(Shape{4}, inf)});
      for (int64_t j = 0; j < width; ++j) EXPECT_EQ(scaled.data<float>()[3 * width + j], 0.0f);
    }
  }
}

TEST(Spmm, Errors) {
  const Graph graph = TwoSided("", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1}).graph();
  const Tensor x = ones(Shape{3, 4});
  Tensor scale = ones(Shape{2});
  scale.set_requires_grad();
  const auto with = [&](Tensor weight, Tensor src_scale, Tensor dst_scale) {
    return [=] { spmm(graph, x, Reduce::sum, {weight, src_scale, dst_scale}); };
  };
  verify_errors(
      {{[&] {
          spmm(graph, ones(Shape{2, 4}));
        },
        "InvalidArgument: spmm: x has shape [2, 4] but the graph has 3 sources, so it needs [3, F]"},
       {[&] { spmm(graph, ones(Shape{3})); },
        "InvalidArgument: spmm: x has shape [3] but the graph has 3 sources, so it needs [3, F]"},
       {[&] { spmm(graph, Tensor()); }, "InvalidArgument: spmm: x is undefined"},
       {[&] { spmm(Graph(), x); }, "InvalidArgument: spmm: the graph is undefined"},
       {[&] {
          spmm(graph, zeros(Shape{3, 4}, DType::i32));
        },
        "Unsupported: spmm: dtype i32 is not supported, use f32, f64, bf16 or f16"},
       {[&] { spmm(graph, x, Reduce::mul); }, "Unsupported: spmm: reduce mul is not supported, use sum, mean, max or min"},
       {with(ones(Shape{3}), {}, {}),
        "InvalidArgument: spmm: weight has shape [3] but the graph has 4 edges, so it needs [4] or [4, H]"},
       {with(ones(Shape{4}, DType::f64), {}, {}), "InvalidArgument: spmm: weight is f64 but x is f32"},
       {with({}, ones(Shape{2}), {}),
        "InvalidArgument: spmm: src_scale has shape [2] but the graph has 3 sources, so it needs [3]"},
       {with({}, {}, ones(Shape{2, 1})),
        "InvalidArgument: spmm: dst_scale has shape [2, 1] but the graph has 2 destinations, so it needs [2]"},
       {with({}, {}, scale), "Unsupported: spmm: dst_scale requires a gradient, which only x, weight and bias get"},
       {[&] {
          SpmmOptions options;
          options.bias = ones(Shape{3});
          spmm(graph, x, Reduce::max, options);
        },
        "InvalidArgument: spmm: bias has shape [3] but x has 4 columns, so it needs [4]"},
       {[&] {
          SpmmOptions options;
          options.bias = ones(Shape{4}, DType::f64);
          spmm(graph, x, Reduce::max, options);
        },
        "InvalidArgument: spmm: bias is f64 but x is f32"},
       {[&] {
          SpmmOptions options;
          options.activation = Activation::tanh;
          spmm(graph, x, Reduce::sum, options);
        },
        "Unsupported: spmm: this activation is not supported, use none or relu"}});
}

}  // namespace
}  // namespace tessera::test
