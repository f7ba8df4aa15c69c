// Maxima and minima over edges, which sparse/spmm_max_cpu.cpp computes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"
#include "tessera/sparse/spmm.h"
#include "tessera/tests/sparse/spmm_cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Reduce kBest[] = {Reduce::max, Reduce::min};

TEST(SpmmMax, EqualsTheReferenceOnEveryGraph) {
  for (const TwoSided& g : two_sided_graphs())
    for (const Reduce reduce : kBest)
      for (const int given : {0, kWeight | 0, kSrcScale | kDstScale, kWeight | kSrcScale | kDstScale})
        verify(spmm_case(g, g.num_edges() > 1000 ? 3 : 5, reduce, given));
}

/// Every number of vectors and every kind of tail of every instruction set.
TEST(SpmmMax, EqualsTheReferenceAtEveryWidth) {
  const TwoSided g(graph("duplicates"));
  for (int64_t width = 0; width <= 70; ++width)
    verify(spmm_case(g, width, kBest[width % 2], width % 3 == 0 ? 0 : kWeight | kDstScale));
  for (const int64_t width : {96, 100, 127, 128, 129, 160, 257, 602}) verify(spmm_case(g, width, Reduce::max, 0));
}

TEST(SpmmMax, HubsOfEveryWidth) {
  for (const int64_t width : {1, 8, 17, 64})
    for (const int given : {0, kWeight | kDstScale}) verify(spmm_case(TwoSided(graph("hub")), width, Reduce::max, given));
}

/// Rows far apart, so that kernels fetch ahead; with and without the winners.
TEST(SpmmMax, LargeArraysGiveTheSameBits) {
  const Restore restore;
  const TwoSided small = random_two_sided(300, 200, 8000, 2);
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 12, 64}) {
      for (const int64_t megabytes : {3, 20}) {
        const int64_t apart = (megabytes << 20) / (width * 4 * 300) + 1;
        TwoSided large = small;
        large.num_src *= apart;
        for (int32_t& s : large.src) s *= int32_t(apart);
        Tensor x = random_seed(Shape{small.num_src, width}, DType::f32), far = zeros(Shape{large.num_src, width});
        for (int64_t s = 0; s < small.num_src; ++s)
          std::copy_n(x.data<float>() + s * width, width, far.mutable_data<float>() + s * apart * width);
        const Tensor near = spmm(small.graph(), x, Reduce::max);
        EXPECT_TRUE(same_bits(spmm(large.graph(), far, Reduce::max), near)) << name(isa) << width;
        far.set_requires_grad();
        EXPECT_TRUE(same_bits(spmm(large.graph(), far, Reduce::max).detach(), near)) << name(isa) << width;
      }
    }
  }
}

/// Case H01: the start value shows in empty rows only.
TEST(SpmmMax, MaximumOfNegativeValues) {
  const Graph graph = TwoSided("", 3, 3, {0, 1, 2}, {0, 1, 0}).graph();
  const Tensor x = Tensor::from<float>({-0.1f, -0.2f, -0.3f}, Shape{3, 1});
  EXPECT_EQ(spmm(graph, x, Reduce::max).to_vector<float>(), (std::vector<float>{-0.1f, -0.2f, 0}));
  const Tensor y = Tensor::from<float>({0.1f, 0.2f, 0.3f}, Shape{3, 1});
  EXPECT_EQ(spmm(graph, y, Reduce::min).to_vector<float>(), (std::vector<float>{0.1f, 0.2f, 0}));
}

/// Case H02: nothing flows from an empty row.
TEST(SpmmMax, GradientPassesEmptyRows) {
  const Graph graph = TwoSided("", 4, 3, {0, 1, 2, 3}, {0, 0, 2, 2}).graph();
  Tensor x = Tensor::from<float>({1, 3, 2, 5}, Shape{4, 1});
  x.set_requires_grad();
  const Tensor out = spmm(graph, x, Reduce::max);
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{3, 0, 5}));
  backward(out, Tensor::from<float>({10, 20, 30}, Shape{3, 1}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 10, 0, 30}));
}

/// Case H03.
TEST(SpmmMax, NothingAtAll) {
  const Graph graph = TwoSided("", 0, 6, {}, {}).graph();
  for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min})
    for (const int64_t width : {0, 5}) {
      Tensor x = zeros(Shape{0, width});
      x.set_requires_grad();
      const Tensor out = spmm(graph, x, reduce);
      EXPECT_EQ(out.shape(), (Shape{6, width}));
      EXPECT_EQ(out.to_vector<float>(), std::vector<float>(size_t(6 * width), 0.0f));
      backward(out, zeros(out.shape()));
      EXPECT_EQ(x.grad().shape(), (Shape{0, width}));
    }
}

/// Case H05 for the other reductions.
TEST(SpmmMax, ValuesOfOneNumber) {
  const Graph graph =
      Graph::from_csr(Tensor::from<int64_t>({0, 2, 2, 3, 4}, Shape{5}), Tensor::from<int32_t>({1, 2, 0, 2}, Shape{4}), 3);
  const Tensor x = Tensor::from<float>({1, 10, 2, 20, 3, 30}, Shape{3, 2});
  for (const Tensor& weight : {Tensor(), ones(Shape{4})}) {
    SpmmOptions options;
    options.weight = weight;
    EXPECT_EQ(spmm(graph, x, Reduce::max, options).to_vector<float>(), (std::vector<float>{3, 30, 0, 0, 1, 10, 3, 30}));
    EXPECT_EQ(spmm(graph, x, Reduce::min, options).to_vector<float>(), (std::vector<float>{2, 20, 0, 0, 1, 10, 3, 30}));
  }
}

/// Case H07, at widths that take scalar, vector and overlapped columns; a hub meets its NaN in any piece.
TEST(SpmmMax, NanAndInfinities) {
  const Restore restore;
  const std::vector<float> values = {kNan, 5, 5, kNan, -kInf, -kInf, kInf, 1};
  const std::vector<float> max = {kNan, kNan, -kInf, kInf, 0}, min = {kNan, kNan, -kInf, 1, 0};
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const Graph graph = TwoSided("", 8, 5, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 0, 1, 1, 2, 2, 3, 3}).graph();
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 3, 33})
      for (const bool recorded : {false, true}) {
        std::vector<float> wide;
        for (const float v : values) wide.insert(wide.end(), size_t(width), v);
        Tensor x = Tensor::from(wide, Shape{8, width});
        x.set_requires_grad(recorded);
        const Tensor larger = spmm(graph, x, Reduce::max), smaller = spmm(graph, x, Reduce::min);
        for (int64_t i = 0; i < 5 * width; ++i) {
          EXPECT_TRUE(same(larger.data<float>()[i], max[size_t(i / width)])) << name(isa) << " " << i;
          EXPECT_TRUE(same(smaller.data<float>()[i], min[size_t(i / width)])) << name(isa) << " " << i;
        }
      }
    TwoSided hub("", 9000, 1, std::vector<int32_t>(9000), std::vector<int32_t>(9000));
    std::iota(hub.src.begin(), hub.src.end(), 0);
    for (const int64_t place : {0, 4095, 4096, 8999}) {
      Tensor x = ones(Shape{9000, 3});
      x.mutable_data<float>()[place * 3 + 1] = kNan;
      x.set_requires_grad();
      const Tensor out = spmm(hub.graph(), x, Reduce::max);
      EXPECT_TRUE(out.data<float>()[0] == 1 && std::isnan(out.data<float>()[1]) && out.data<float>()[2] == 1);
      backward(out, ones(out.shape()));
      EXPECT_EQ(x.grad().data<float>()[place * 3 + 1], 1);
      EXPECT_EQ(x.grad().data<float>()[0], 1);
    }
  }
}

/// Case H14: among equal messages the lowest edge id gets the whole gradient, whatever the order of the row.
TEST(SpmmMax, TiesGoToTheLowestEdge) {
  const Restore restore;
  const TwoSided g("", 3, 1, {2, 0, 1, 0}, {0, 0, 0, 0});
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 3, 17, 64})
      for (const Reduce reduce : kBest) {
        Tensor x = zeros(Shape{3, width}), weight = ones(Shape{4});
        x.set_requires_grad();
        weight.set_requires_grad();
        SpmmOptions options;
        options.weight = weight;
        const Tensor out = spmm(g.graph(), x, reduce, options);
        backward(out, ones(out.shape()));
        for (int64_t i = 0; i < 3 * width; ++i) ASSERT_EQ(x.grad().data<float>()[i], i / width == 2 ? 1.0f : 0.0f);
      }
  }
}

TEST(SpmmMax, TiesInRowsThatAreNotInTheOrderOfIds) {
  const Restore restore;
  // Rows of the transpose list edges by destination, so their ids jump about. Few values, so that nearly all is tied.
  TwoSided g = random_two_sided(40, 30, 900, 5);
  for (int64_t s = 0; s < 6000; ++s) {  // and a hub among them
    g.src.push_back(7);
    g.dst.push_back(int32_t((s * 17) % 30));
  }
  const Graph turned = g.graph().transpose();
  const int64_t width = 19;
  Tensor x = zeros(Shape{turned.num_src(), width}), weight = zeros(Shape{g.num_edges()});
  for (int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] = float(1 + i % 3);
  for (int64_t e = 0; e < g.num_edges(); ++e) weight.mutable_data<float>()[e] = float(1 + e % 2);
  std::vector<float> expected(size_t(x.numel()));
  for (int64_t r = 0; r < turned.num_dst(); ++r)
    for (int64_t j = 0; j < width; ++j) {
      int64_t best = -1;
      const auto message = [&](int64_t e) {
        return weight.data<float>()[e] * x.data<float>()[g.dst[size_t(e)] * width + j];
      };
      for (int64_t e = 0; e < g.num_edges(); ++e)
        if (g.src[size_t(e)] == r && (best < 0 || message(e) > message(best))) best = e;
      if (best >= 0) expected[size_t(g.dst[size_t(best)] * width + j)] += weight.data<float>()[best];
    }
  x.set_requires_grad();
  SpmmOptions options;
  options.weight = weight;
  for (const Isa isa : isas()) {
    set_isa(isa);
    x.clear_grad();
    const Tensor out = spmm(turned, x, Reduce::max, options);
    backward(out, ones(out.shape()));
    EXPECT_EQ(x.grad().to_vector<float>(), expected) << name(isa);
  }
}

/// The bits are those of one thread, with fewer and with more threads than a row has lines.
TEST(SpmmMax, GradientsDoNotDependOnTheThreads) {
  const Restore restore;
  const TwoSided g = random_two_sided(3000, 2500, 40000, 3);
  const Graph graph = g.graph();
  for (const int64_t width : {5, 40, 130}) {
    Tensor x = random_seed(Shape{g.num_src, width}, DType::f32), weight = random_seed(Shape{g.num_edges()}, DType::f32, 2);
    x.set_requires_grad();
    weight.set_requires_grad();
    SpmmOptions options;
    options.weight = weight;
    const Tensor seed = random_seed(Shape{g.num_dst, width}, DType::f32, 3);
    Tensor first_x, first_weight;
    for (const int threads : {1, 2, 3, 7}) {
      set_threads(threads);
      x.clear_grad();
      weight.clear_grad();
      backward(spmm(graph, x, Reduce::max, options), seed);
      if (threads == 1) {
        first_x = x.grad();
        first_weight = weight.grad();
      }
      EXPECT_TRUE(same_bits(x.grad(), first_x)) << threads;
      EXPECT_TRUE(same_bits(weight.grad(), first_weight)) << threads;
    }
  }
}

/// Winners are kept only for a gradient; nothing of the size of edges x width is ever made.
TEST(SpmmMax, Memory) {
  const TwoSided g = random_two_sided(500, 400, 60000, 4);
  const Graph graph = g.graph();
  Tensor x = random_seed(Shape{g.num_src, 64}, DType::f32);
  const int64_t result = g.num_dst * 64 * 4, gradient = g.num_src * 64 * 4;
  spmm(graph, x, Reduce::max);  // caches of the graph
  const auto peak = [&](auto&& f) {
    reset_peak_memory();
    const int64_t before = memory_stats().used_bytes;
    f();
    return memory_stats().peak_bytes - before;
  };
  constexpr int64_t kSlack = 64 << 10;  // size classes, partial results
  EXPECT_LE(peak([&] { spmm(graph, x, Reduce::max); }), result + result / 4 + kSlack);
  x.set_requires_grad();
  const Tensor seed = ones(Shape{g.num_dst, 64});
  EXPECT_LE(peak([&] { backward(spmm(graph, x, Reduce::max), seed); }), (2 * result + gradient) * 5 / 4 + kSlack);
}

TEST(SpmmMax, Errors) {
  const Graph graph = TwoSided("", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1}).graph();
  verify_errors({{[&] {
                    spmm(graph, ones(Shape{2, 4}), Reduce::max);
                  },
                  "InvalidArgument: spmm: x has shape [2, 4] but the graph has 3 sources, so it needs [3, F]"}});
}

}  // namespace
}  // namespace tessera::test
