#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/source_blocks.h"
#include "tessera/sparse/spmm.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/inputs.h"
#include "tessera/tests/support/log.h"
#include "tessera/tests/support/proof.h"

/// Sums that go by blocks of sources: x of more than 32 MB, few destinations.
namespace tessera::test {
namespace {

constexpr int64_t kSources = 9 * kSourceBlock - 7;

/// Destinations 0 and 5 have no edges, 1 has all of its from one block, the last is a hub.
TwoSided many_sources() {
  TwoSided g("many sources", kSources, 300, {}, {});
  const Philox random(7, 0);
  const auto edge = [&](uint64_t s, int64_t d) {
    g.src.push_back(int32_t(s));
    g.dst.push_back(int32_t(d));
  };
  for (uint64_t e = 0; e < 60000; ++e) {
    const Philox::Draw draw = random(e);
    const int64_t d = 1 + int64_t(draw.bits[1] % 299);
    if (d != 5) edge(d == 1 ? uint64_t(kSources) - 1 - draw.bits[0] % 1000 : draw.bits[0] % uint64_t(kSources), d);
  }
  for (uint64_t e = 0; e < 9000; ++e) edge(e * 16 % uint64_t(kSources), 299);
  return g;
}

bool goes_by_blocks(const Graph& graph, int64_t width) {
  const char* why = "";
  return source_blocks(graph, width, &why) != nullptr;
}

/// f32 by blocks, against f64, which never goes by blocks: an error of a rounding a term, of the sum of magnitudes.
void expect_sums(const Graph& graph, int64_t width, Reduce reduce, bool scaled, bool epilogue) {
  ASSERT_TRUE(goes_by_blocks(graph, width));
  const auto in = [](const Shape& shape, uint64_t seed) { return random_seed(shape, DType::f32, seed); };
  const Tensor x = in(Shape{graph.num_src(), width}, 1);
  SpmmOptions options, wide;
  if (scaled) {
    options.src_scale = in(Shape{graph.num_src()}, 2);
    options.dst_scale = in(Shape{graph.num_dst()}, 3);
    wide.src_scale = cast(options.src_scale, DType::f64);
    wide.dst_scale = cast(options.dst_scale, DType::f64);
  }
  if (epilogue) {
    options.bias = in(Shape{width}, 4);
    wide.bias = cast(options.bias, DType::f64);
    options.activation = wide.activation = Activation::relu;
  }
  const Tensor got = spmm(graph, x, reduce, options), expected = spmm(graph, cast(x, DType::f64), reduce, wide);
  const Tensor degree = graph.in_degree();
  for (int64_t d = 0; d < graph.num_dst(); ++d) {
    const double terms = double(graph.rowptr().data<int64_t>()[d + 1] - graph.rowptr().data<int64_t>()[d]) + 3;
    const double bound = 0x1p-23 * terms * (reduce == Reduce::mean ? 4 : 4 * std::sqrt(terms));
    for (int64_t j = 0; j < width; ++j)
      ASSERT_NEAR(got.data<float>()[d * width + j], expected.data<double>()[d * width + j], bound)
          << name(active_isa()) << ", width " << width << ", row " << d << ", column " << j;
  }
}

TEST(SpmmBlocked, EqualsWholeRows) {
  const Restore restore;
  const Graph graph = many_sources().graph();
  for (const Isa isa : isas()) {
    set_isa(isa);
    expect_sums(graph, 64, Reduce::sum, false, false);
    for (const int64_t width : {65, 100}) expect_sums(graph, width, Reduce::mean, true, true);
    expect_sums(graph, 131, Reduce::sum, true, false);
  }
}

TEST(SpmmBlocked, SameBitsForEveryThreadCount) {
  const Restore restore;
  const Graph graph = many_sources().graph();
  const Tensor x = random_seed(Shape{kSources, 70}, DType::f32);
  set_threads(1);
  const std::vector<float> one = spmm(graph, x).to_vector<float>();
  for (const int threads : {2, 3, 5}) {
    set_threads(threads);
    EXPECT_EQ(spmm(graph, x).to_vector<float>(), one);
  }
}

/// The way back of the reverse graph goes by blocks.
TEST(SpmmBlocked, Gradient) {
  const TwoSided g = many_sources();
  const Graph reverse = Graph::from_coo(Tensor::from(g.dst, Shape{g.num_edges()}), Tensor::from(g.src, Shape{g.num_edges()}),
                                        g.num_dst, g.num_src);
  ASSERT_TRUE(goes_by_blocks(reverse.transpose(), 64));
  Tensor x = random_seed(Shape{g.num_dst, 64}, DType::f32);
  x.set_requires_grad();
  const Tensor seed = random_seed(Shape{g.num_src, 64}, DType::f32, 2);
  backward(spmm(reverse, x, Reduce::sum), seed);
  const Tensor expected = spmm(reverse.transpose(), cast(seed, DType::f64));
  for (int64_t i = 0; i < expected.numel(); ++i)
    ASSERT_NEAR(x.grad().data<float>()[i], expected.data<double>()[i], 2e-2) << i;
}

TEST(SpmmBlocked, TheRule) {
  const auto why = [](const TwoSided& g, int64_t width) {
    const char* text = "";
    return source_blocks(g.graph(), width, &text) != nullptr ? std::string() : std::string(text);
  };
  const TwoSided g = many_sources();
  EXPECT_EQ(why(g, 64), "");
  EXPECT_EQ(why(g, 63), "");
  EXPECT_EQ(why(g, 32), "x is small");
  EXPECT_EQ(why(TwoSided("", 64 * kSourceBlock + 1, 1, {0}, {0}), 64), "too many sources for blocks of them");
  TwoSided thin = g;  // two edges a run
  thin.src.resize(300 * 9 * 2);
  thin.dst.resize(300 * 9 * 2);
  EXPECT_EQ(why(thin, 64), "a block of sources has too few edges to a row, or too many");
  TwoSided heavy = g;
  heavy.src.insert(heavy.src.end(), 16385, 3);
  heavy.dst.insert(heavy.dst.end(), 16385, 3);
  EXPECT_EQ(why(heavy, 64), "a block of sources has too few edges to a row, or too many");
  EXPECT_EQ(why(TwoSided("", kSources, 3, {}, {}), 64), "a block of sources has too few edges to a row, or too many");
}

TEST(SpmmBlocked, SaysSo) {
  const Graph graph = many_sources().graph();
  const auto line = [&](const Tensor& x, const SpmmOptions& options) {
    const std::string text = dispatch_lines([&] { spmm(graph, x, Reduce::sum, options); });
    return text.substr(text.rfind(';') + 2);
  };
  const Tensor x = zeros(Shape{kSources, 64});
  EXPECT_EQ(line(x, {}), "by 9 blocks of 16384 sources\n");
  EXPECT_EQ(line(x, {.weight = ones(Shape{graph.num_edges()})}), "whole rows, as edges have weights\n");
  EXPECT_EQ(line(cast(x, DType::bf16), {}), "whole rows, as elements are not f32\n");
}

}  // namespace
}  // namespace tessera::test
