// Weights per head: together (sparse/spmm_heads_cpu.cpp) where a head has a multiple of 4 columns, else one at a time.

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/spmm_cases.h"
#include "tessera/tests/support/log.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

struct Heads {
  int64_t heads, columns;
};
constexpr Heads kHeads[] = {{8, 8}, {4, 16}, {2, 4}, {3, 12}, {3, 5}, {1, 7}, {5, 1}, {2, 33}, {3, 20}, {2, 0}, {9, 32}};

TEST(SpmmHeads, EqualsTheReference) {
  for (const char* which : {"duplicates", "empty_ends", "no_edges", "star"})
    for (const Heads h : kHeads)
      for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max})
        verify(spmm_case(TwoSided(graph(which)), h.heads * h.columns, reduce,
                         reduce == Reduce::sum ? kWeight | 0 : kWeight | kDstScale | kBias, h.heads));
}

TEST(SpmmHeads, WithScales) {
  for (const Heads h : {Heads{8, 8}, Heads{3, 5}})
    for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::min})
      verify(spmm_case(random_two_sided(7, 11, 60, 1), h.heads * h.columns, reduce,
                       kWeight | kSrcScale | kDstScale | kBias | kRelu, h.heads));
}

TEST(SpmmHeads, Hubs) {
  for (const Heads h : {Heads{2, 4}, Heads{2, 3}})
    for (const Reduce reduce : {Reduce::mean, Reduce::max})
      verify(spmm_case(TwoSided(graph("hub")), h.heads * h.columns, reduce, kWeight, h.heads));
}

TEST(SpmmHeads, SixteenBits) {
  for (const Heads h : kHeads)
    for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max})
      verify(half_case(TwoSided(graph("duplicates")), h.heads * h.columns, reduce, kWeight | kBias, h.heads));
}

/// x and out as (N, H, C); one head as (E, 1).
TEST(SpmmHeads, ShapesOfThreeDimensions) {
  const TwoSided g = random_two_sided(50, 40, 600, 3);
  const Graph graph = g.graph();
  SpmmOptions options;
  options.weight = random_seed(Shape{600, 4}, DType::f32, 2);
  Tensor flat = random_seed(Shape{50, 24}, DType::f32), deep = flat.view_as(Shape{50, 4, 6});
  flat.set_requires_grad();
  deep.set_requires_grad();
  const Tensor seed = random_seed(Shape{40, 24}, DType::f32, 3);
  for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
    flat.clear_grad();
    deep.clear_grad();
    const Tensor a = spmm(graph, flat, reduce, options), b = spmm(graph, deep, reduce, options);
    EXPECT_EQ(b.shape(), (Shape{40, 4, 6}));
    EXPECT_TRUE(same_bits(a.detach(), b.detach().view_as(a.shape())));
    backward(a, seed);
    backward(b, seed.view_as(b.shape()));
    EXPECT_EQ(deep.grad().shape(), deep.shape());
    EXPECT_TRUE(same_bits(flat.grad(), deep.grad().view_as(flat.shape())));
  }
  Tensor one = random_seed(Shape{600}, DType::f32, 4), column = one.view_as(Shape{600, 1});
  one.set_requires_grad();
  column.set_requires_grad();
  options.weight = one;
  const Tensor a = spmm(graph, flat, Reduce::mean, options);
  options.weight = column;
  const Tensor b = spmm(graph, flat, Reduce::mean, options);
  EXPECT_TRUE(same_bits(a.detach(), b.detach()));
  backward(a, seed);
  backward(b, seed);
  EXPECT_EQ(column.grad().shape(), column.shape());
  EXPECT_TRUE(same_bits(one.grad(), column.grad().view_as(one.shape())));
}

TEST(SpmmHeads, Errors) {
  const Graph graph = TwoSided("", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1}).graph();
  const auto with = [&](const Shape& x, const Shape& weight) {
    return [=] {
      SpmmOptions options;
      options.weight = ones(weight);
      spmm(graph, ones(x), Reduce::sum, options);
    };
  };
  verify_errors(
      {{with(Shape{3, 4}, Shape{4, 3}),
        "InvalidArgument: spmm: weight has shape [4, 3], but x has shape [3, 4], which cannot be shared by 3 heads"},
       {with(Shape{3, 4}, Shape{4, 0}),
        "InvalidArgument: spmm: weight has shape [4, 0], but x has shape [3, 4], which cannot be shared by 0 heads"},
       {with(Shape{3, 4, 2}, Shape{4, 2}),
        "InvalidArgument: spmm: weight has shape [4, 2], but x has shape [3, 4, 2], which cannot be shared by 2 heads"},
       {with(Shape{3, 4}, Shape{3, 2}),
        "InvalidArgument: spmm: weight has shape [3, 2] but the graph has 4 edges, so it needs [4] or [4, H]"}});
}

/// The line of TESSERA_LOG=dispatch.
TEST(SpmmHeads, SaysWhatRuns) {
  const Restore restore;
  set_isa(Isa::baseline);
  const Graph graph = TwoSided("", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1}).graph();
  SpmmOptions options;
  const auto line = [&](int64_t columns, int64_t heads, Reduce reduce) {
    options.weight = heads == 0 ? Tensor() : ones(Shape{4, heads});
    const std::string text = dispatch_lines([&] { spmm(graph, ones(Shape{3, columns}), reduce, options); });
    return text.substr(text.rfind(';') + 2);
  };
  EXPECT_EQ(line(8, 2, Reduce::sum), "all heads at once\n");
  EXPECT_EQ(line(6, 2, Reduce::sum), "one head at a time, as a head's columns are no multiple of 4\n");
  EXPECT_EQ(line(6, 0, Reduce::mean), "whole rows, as x is small\n");
  EXPECT_EQ(line(6, 0, Reduce::max), "no winners kept\n");
  EXPECT_EQ(dispatch_lines([&] {
              spmm(graph, ones(Shape{3, 64}));
            }),
            "tessera: spmm sum: cpu baseline, " + std::to_string(threads()) +
                " threads; 2 rows, 4 edges, 256 bytes a row of x; 1 chunks, 0 hubs cut in 0; rows not prefetched, they fit "
                "the second-level cache; whole rows, as x is small\n");
}

}  // namespace
}  // namespace tessera::test
