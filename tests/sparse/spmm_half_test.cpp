// 16-bit rows, which sparse/spmm_half_cpu.cpp and spmm_max_cpu.cpp compute.

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tessera/core/autograd.h"
#include "tessera/tests/sparse/spmm_cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

constexpr Reduce kReductions[] = {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min};

TEST(SpmmHalf, EqualsTheReferenceOnEveryGraph) {
  for (const TwoSided& g : two_sided_graphs()) {
    if (g.name == "hub") continue;  // f32 sums of thousands are not exact beside a half
    for (const Reduce reduce : kReductions)
      for (const int given : {0, kWeight | 0, kWeight | kBias | kRelu}) verify(half_case(g, 5, reduce, given));
    for (const Reduce reduce : {Reduce::sum, Reduce::mean})
      for (const int given : {kSrcScale | kDstScale, kWeight | kSrcScale | kDstScale})
        verify(half_case(g, 21, reduce, given));
  }
}

/// Every number of blocks and every kind of tail of every instruction set.
TEST(SpmmHalf, EqualsTheReferenceAtEveryWidth) {
  const TwoSided g(graph("duplicates"));
  for (int64_t width = 0; width <= 70; ++width)
    verify(half_case(g, width, kReductions[width % 4], width % 3 == 0 ? kWeight | kBias | kRelu : 0));
  for (const int64_t width : {96, 100, 128, 129, 160, 256, 257, 300, 602}) verify(half_case(g, width, Reduce::sum, kBias));
}

TEST(SpmmHalf, Hubs) {
  for (const int64_t width : {1, 8, 17, 64})
    for (const Reduce reduce : {Reduce::mean, Reduce::max}) {
      Case c = half_case(TwoSided(graph("hub")), width, reduce, kBias | kRelu);
      c.k = c.grad_k = 2;
      verify(c);
    }
}

/// Large x: rows are fetched ahead, and come out the same.
TEST(SpmmHalf, LargeArraysGiveTheSameBits) {
  const Restore restore;
  const TwoSided small = random_two_sided(300, 200, 8000, 2);
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 24, 64, 100})
      for (const int64_t megabytes : {3, 20}) {
        const int64_t apart = (megabytes << 20) / (width * 2 * 300) + 1;
        TwoSided large = small;
        large.num_src *= apart;
        for (int32_t& s : large.src) s *= int32_t(apart);
        const Tensor x = cast(random_seed(Shape{small.num_src, width}, DType::f32), DType::bf16);
        Tensor far = zeros(Shape{large.num_src, width}, DType::bf16);
        for (int64_t s = 0; s < small.num_src; ++s)
          std::copy_n(x.data<bf16>() + s * width, width, far.mutable_data<bf16>() + s * apart * width);
        for (const Reduce reduce : {Reduce::mean, Reduce::min})
          EXPECT_TRUE(same_bits(spmm(large.graph(), far, reduce), spmm(small.graph(), x, reduce))) << name(isa) << width;
      }
  }
}

/// Case H08: a half sum would stall at 256, a half count be infinite at 70000.
TEST(SpmmHalf, MeanOfALongRow) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 16, 33})
      for (const int64_t n : {10000, 70000}) {
        std::vector<int32_t> col(size_t(n), 0);
        std::iota(col.begin(), col.end(), 0);
        const Graph graph = Graph::from_csr(Tensor::from<int64_t>({0, n}, Shape{2}), Tensor::from(col, Shape{n}), n);
        const Tensor mean = spmm(graph, full(Shape{n, width}, 0.1, DType::f16), Reduce::mean);
        for (int64_t j = 0; j < width; ++j)
          EXPECT_EQ(float(mean.data<f16>()[j]), float(f16(0.1f))) << n << " " << width << " " << name(isa);
      }
  }
}

/// Where no number is kept exactly: NaN, infinities and the largest halves.
TEST(SpmmHalf, SpecialValues) {
  const Restore restore;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Graph graph = TwoSided("", 4, 3, {0, 1, 2, 3, 2}, {0, 1, 1, 2, 2}).graph();
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const int64_t width : {1, 7, 16, 35}) {
        std::vector<float> values;
        for (const float v : {nan, inf, 1.0f, -65504.0f}) values.insert(values.end(), size_t(width), v);
        const Tensor x = cast(Tensor::from(values, Shape{4, width}), dtype);
        const std::vector<float> out = cast(spmm(graph, x), DType::f32).to_vector<float>();
        for (int64_t j = 0; j < width; ++j) {
          EXPECT_NE(out[size_t(j)], out[size_t(j)]);
          EXPECT_EQ(out[size_t(width + j)], inf);
          EXPECT_EQ(out[size_t(2 * width + j)], dtype == DType::f16 ? -65504.0f : -65536.0f);
        }
      }
  }
}

/// Factors of 16-bit rows are f32, and so are their gradients.
TEST(SpmmHalf, FactorsAreFloats) {
  const Graph graph = TwoSided("", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1}).graph();
  const Tensor x = ones(Shape{3, 4}, DType::bf16);
  SpmmOptions options;
  options.weight = ones(Shape{4});
  options.weight.set_requires_grad();
  options.bias = ones(Shape{4});
  options.bias.set_requires_grad();
  const Tensor out = spmm(graph, x, Reduce::sum, options);
  EXPECT_EQ(out.dtype(), DType::bf16);
  backward(out, ones(out.shape(), DType::bf16));
  EXPECT_EQ(options.weight.grad().to_vector<float>(), (std::vector<float>{4, 4, 4, 4}));
  EXPECT_EQ(options.bias.grad().to_vector<float>(), (std::vector<float>{2, 2, 2, 2}));
  options.weight = ones(Shape{4}, DType::bf16);
  verify_errors({{[&] { spmm(graph, x, Reduce::sum, options); },
                  "InvalidArgument: spmm: weight is bf16 but x is bf16, so it needs f32"}});
}

}  // namespace
}  // namespace tessera::test
