#include "tessera/sparse/sddmm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tessera/core/ops/create.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

Case dot_case(const TwoSided& g, int64_t width) {
  const Graph graph = g.graph();
  return {.name = "sddmm_dot " + g.name + ", width " + std::to_string(width),
          .inputs = {real(Shape{g.num_dst, width}).saved(), real(Shape{g.num_src, width}).saved()},
          .call = [=](const Tensors& in) { return sddmm_dot(graph, in[0], in[1]); },
          .reference =
              [=](const Arrays& in) {
                Array out(Shape{g.num_edges()});
                for (int64_t e = 0; e < g.num_edges(); ++e)
                  for (int64_t j = 0; j < width; ++j) out[e] += in[0](g.dst[size_t(e)], j) * in[1](g.src[size_t(e)], j);
                return out;
              },
          .k = double(width) / 4 + 2,
          .grad_k = double(g.largest_degree()) / 4 + 2};
}

TEST(SddmmDot, EqualsTheReferenceOnEveryGraph) {
  for (const TwoSided& g : two_sided_graphs()) verify(dot_case(g, g.num_edges() > 1000 ? 3 : 7));
}

TEST(SddmmDot, EqualsTheReferenceAtEveryWidth) {
  for (int64_t width = 0; width <= 40; ++width) verify(dot_case(TwoSided(graph("duplicates")), width));
  for (const int64_t width : {47, 63, 64, 65, 100, 129, 602}) verify(dot_case(TwoSided(graph("duplicates")), width));
}

/// An edge on its own, with its source far away in a large array, has the bits that it has among others.
TEST(SddmmDot, BitsDoNotDependOnThePlaceOfAnEdge) {
  const Restore restore;
  const TwoSided g = random_two_sided(300, 200, 8000, 5);
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {5, 47, 130}) {
      const Tensor a = random_seed(Shape{200, width}, DType::f32, 6), b = random_seed(Shape{300, width}, DType::f32, 7);
      const Tensor all = sddmm_dot(g.graph(), a, b);
      for (const size_t e : {size_t{0}, size_t{777}, size_t{7999}})
        EXPECT_EQ(sddmm_dot(TwoSided("", 300, 200, {g.src[e]}, {g.dst[e]}).graph(), a, b).item(),
                  double(all.data<float>()[e]));
      for (const int64_t megabytes : {3, 20}) {
        const int64_t apart = (megabytes << 20) / (width * 4 * 300) + 1;
        TwoSided large = g;
        large.num_src *= apart;
        for (int32_t& s : large.src) s *= int32_t(apart);
        Tensor far = zeros(Shape{large.num_src, width});
        for (int64_t s = 0; s < 300; ++s)
          std::copy_n(b.data<float>() + s * width, width, far.mutable_data<float>() + s * apart * width);
        EXPECT_TRUE(same_bits(sddmm_dot(large.graph(), a, far), all)) << name(isa) << " " << width;
      }
    }
  }
}

/// The lanes that the last, overlapping vector has twice must not turn an infinity into NaN.
TEST(SddmmDot, InfinityTimesOne) {
  const Restore restore;
  const float inf = std::numeric_limits<float>::infinity();
  const Graph graph = TwoSided("", 1, 1, {0}, {0}).graph();
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {5, 17, 31}) {
      Tensor a = ones(Shape{1, width}), b = ones(Shape{1, width});
      a.mutable_data<float>()[width - 3] = inf;
      b.mutable_data<float>()[width - 4] = inf;
      EXPECT_EQ(sddmm_dot(graph, a, b).item(), double(inf)) << width;
    }
  }
}

Case head_dot_case(const TwoSided& g, int64_t heads, int64_t channels) {
  const Graph graph = g.graph();
  const int64_t width = heads * channels;
  return {.name = "sddmm_dot " + g.name + ", " + std::to_string(heads) + " x " + std::to_string(channels),
          .inputs = {real(Shape{g.num_dst, width}).saved(), real(Shape{g.num_src, width}).saved()},
          .call = [=](const Tensors& in) { return sddmm_dot(graph, in[0], in[1], heads); },
          .reference =
              [=](const Arrays& in) {
                Array out(Shape{g.num_edges(), heads});
                for (int64_t e = 0; e < g.num_edges(); ++e)
                  for (int64_t j = 0; j < width; ++j)
                    out(e, j / channels) += in[0](g.dst[size_t(e)], j) * in[1](g.src[size_t(e)], j);
                return out;
              },
          .k = double(channels) / 4 + 2,
          .grad_k = double(g.largest_degree()) / 4 + 2};
}

TEST(SddmmDot, ByHeadsEqualsTheReference) {
  for (const TwoSided& g : two_sided_graphs()) verify(head_dot_case(g, 2, 3));
  for (const auto& [heads, channels] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 41}, {8, 8}, {8, 1}, {4, 32}, {3, 5}, {65, 1}, {2, 0}})
    verify(head_dot_case(TwoSided(graph("duplicates")), heads, channels));
}

Case rows_case(const TwoSided& g, EdgeOp op, int64_t width) {
  const Graph graph = g.graph();
  Case c{.name = "sddmm " + std::to_string(int(op)) + " " + g.name + ", width " + std::to_string(width),
         .inputs = {real(Shape{g.num_dst, width}), real(Shape{g.num_src, width})},
         .call = [=](const Tensors& in) { return sddmm(graph, op, in[0], in[1]); },
         .reference =
             [=](const Arrays& in) {
               Array out(Shape{g.num_edges(), width});
               for (int64_t e = 0; e < g.num_edges(); ++e)
                 for (int64_t j = 0; j < width; ++j) {
                   const Real a = in[0](g.dst[size_t(e)], j), b = in[1](g.src[size_t(e)], j);
                   out(e, j) = op == EdgeOp::add ? a + b : op == EdgeOp::sub ? a - b : a * b;
                 }
               return out;
             },
         .k = 1,
         .grad_k = double(g.largest_degree()) / 2 + 2};
  if (op == EdgeOp::mul)
    for (Input& input : c.inputs) input.saved();
  return c;
}

TEST(Sddmm, RowsEqualTheReference) {
  for (const EdgeOp op : {EdgeOp::add, EdgeOp::sub, EdgeOp::mul}) {
    for (const TwoSided& g : two_sided_graphs()) verify(rows_case(g, op, g.num_edges() > 1000 ? 2 : 5));
    for (const int64_t width : {0, 1, 3, 8, 17, 64, 129}) verify(rows_case(TwoSided(graph("duplicates")), op, width));
  }
}

TEST(Sddmm, Errors) {
  const Graph graph = TwoSided("", 3, 2, {0, 1}, {0, 1}).graph();
  verify_errors({{[&] {
                    sddmm(graph, EdgeOp::add, ones(Shape{3, 4}), ones(Shape{3, 4}));
                  },
                  "InvalidArgument: sddmm: a_dst has shape [3, 4] but the graph has 2 destinations, so it needs [2, F]"},
                 {[&] {
                    sddmm(graph, EdgeOp::mul, ones(Shape{2, 4}), ones(Shape{3, 5}));
                  },
                  "InvalidArgument: sddmm: a_dst has shape [2, 4] and b_src [3, 5] but they need the same width"},
                 {[&] {
                    sddmm_dot(graph, ones(Shape{2, 4}), ones(Shape{3, 4}), 3);
                  },
                  "InvalidArgument: sddmm_dot: a_dst has shape [2, 4] but 3 heads need [num_dst, heads x channels]"}});
}

TEST(SddmmDot, Errors) {
  const Graph graph = TwoSided("", 3, 2, {0, 1}, {0, 1}).graph();
  const auto call = [&](const Tensor& a, const Tensor& b) { return [=] { sddmm_dot(graph, a, b); }; };
  verify_errors(
      {{call(ones(Shape{3, 4}), ones(Shape{3, 4})),
        "InvalidArgument: sddmm_dot: a_dst has shape [3, 4] but the graph has 2 destinations, so it needs [2, F]"},
       {call(ones(Shape{2, 4}), ones(Shape{2, 4})),
        "InvalidArgument: sddmm_dot: b_src has shape [2, 4] but the graph has 3 sources, so it needs [3, F]"},
       {call(ones(Shape{2, 4}), ones(Shape{3, 5})),
        "InvalidArgument: sddmm_dot: a_dst has shape [2, 4] and b_src [3, 5] but they need the same width"},
       {call(ones(Shape{2, 4}), ones(Shape{3, 4}, DType::f64)), "InvalidArgument: sddmm_dot: a_dst is f32 but b_src is f64"},
       {call(zeros(Shape{2, 4}, DType::i64), ones(Shape{3, 4})),
        "Unsupported: sddmm_dot: dtype i64 is not supported, use f32 or f64"},
       {call(Tensor(), ones(Shape{3, 4})), "InvalidArgument: sddmm_dot: a_dst is undefined"},
       {[] { sddmm_dot(Graph(), Tensor(), Tensor()); }, "InvalidArgument: sddmm_dot: the graph is undefined"}});
}

}  // namespace
}  // namespace tessera::test
