#include "tessera/sparse/spmm.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

enum Given { kWeight = 1, kSrcScale = 2, kDstScale = 4 };

SpmmOptions options_of(const Tensors& in, int given) {
  SpmmOptions options;
  size_t next = 1;
  if (given & kWeight) options.weight = in[next++];
  if (given & kSrcScale) options.src_scale = in[next++];
  if (given & kDstScale) options.dst_scale = in[next++];
  return options;
}

/// x, and those of weight, src_scale and dst_scale that are given.
Case spmm_case(const TwoSided& g, int64_t width, Reduce reduce, int given) {
  const Graph graph = g.graph();
  const std::vector<int64_t> degree = g.in_degree();
  Case c{.name = std::string("spmm ") + name(reduce) + " " + g.name + ", width " + std::to_string(width) + ", given " +
                 std::to_string(given),
         .inputs = {real(Shape{g.num_src, width})},
         .call = [=](const Tensors& in) { return spmm(graph, in[0], reduce, options_of(in, given)); },
         .reference =
             [=](const Arrays& in) {
               size_t next = 1;
               const Array* weight = given & kWeight ? &in[next++] : nullptr;
               const Array* src_scale = given & kSrcScale ? &in[next++] : nullptr;
               const Array* dst_scale = given & kDstScale ? &in[next++] : nullptr;
               Array out(Shape{g.num_dst, width});
               for (int64_t e = 0; e < g.num_edges(); ++e) {
                 const int64_t s = g.src[size_t(e)], d = g.dst[size_t(e)];
                 Real factor(reduce == Reduce::mean ? 1.0 / double(degree[size_t(d)]) : 1.0);
                 if (weight != nullptr) factor *= (*weight)[e];
                 if (src_scale != nullptr) factor *= (*src_scale)[s];
                 if (dst_scale != nullptr) factor *= (*dst_scale)[d];
                 for (int64_t j = 0; j < width; ++j) out(d, j) += factor * in[0](s, j);
               }
               return out;
             },
         .k = double(g.largest_degree()) / 4 + 3,
         .grad_k = double(std::max(g.largest_degree(), width)) / 4 + 3};
  if (given & kWeight) {
    c.inputs[0].saved();
    c.inputs.push_back(real(Shape{g.num_edges()}).saved());
  }
  if (given & kSrcScale) c.inputs.push_back(real(Shape{g.num_src}).no_grad().saved());
  if (given & kDstScale) c.inputs.push_back(real(Shape{g.num_dst}).no_grad().saved());
  return c;
}

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
  verify_errors({{[&] {
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
                  "Unsupported: spmm: dtype i32 is not supported, use f32 or f64"},
                 {[&] { spmm(graph, x, Reduce::mul); }, "Unsupported: spmm: reduce mul is not supported, use sum or mean"},
                 {with(ones(Shape{3}), {}, {}),
                  "InvalidArgument: spmm: weight has shape [3] but the graph has 4 edges, so it needs [4]"},
                 {with(ones(Shape{4}, DType::f64), {}, {}), "InvalidArgument: spmm: weight is f64 but x is f32"},
                 {with({}, ones(Shape{2}), {}),
                  "InvalidArgument: spmm: src_scale has shape [2] but the graph has 3 sources, so it needs [3]"},
                 {with({}, {}, ones(Shape{2, 1})),
                  "InvalidArgument: spmm: dst_scale has shape [2, 1] but the graph has 2 destinations, so it needs [2]"},
                 {with({}, {}, scale), "Unsupported: spmm: dst_scale requires a gradient, which only x and weight get"}});
}

}  // namespace
}  // namespace tessera::test
