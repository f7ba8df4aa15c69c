#include "tessera/sparse/edge_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/storage.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

enum class Kind { gat, gatv2, dot };

/// Heads and channels, the kind of scores, and what is added to them.
struct Form {
  Kind kind;
  int64_t heads, channels;
  bool edges = false;
  double dropout = 0;
  double slope = 0.2;
  double range = 1, low = -1;

  int64_t width() const { return heads * channels; }
  int64_t side() const { return kind == Kind::gat ? heads : width(); }
  Philox random() const { return Philox(11, 3); }
  std::string name() const {
    const char* names[] = {"gat", "gatv2", "dot"};
    return std::string(names[int(kind)]) + " " + std::to_string(heads) + " x " + std::to_string(channels) +
           (edges ? ", edges" : "") + (dropout > 0 ? ", dropout" : "");
  }
  /// 0, or what a weight is multiplied by.
  double kept(int64_t e, int64_t h) const {
    if (dropout == 0) return 1;
    const uint32_t word = random()(uint64_t(e * ((heads + 3) / 4) + h / 4)).bits[h % 4];
    return word >= uint32_t(dropout * 0x1p32) ? 1 / (1 - dropout) : 0;
  }
};

EdgeAttentionOptions options_of(const Form& f, const Tensor& edge) {
  return {.edge = edge, .slope = f.slope, .dropout = f.dropout, .random = f.random()};
}

/// gat: x, a_src, a_dst; gatv2: x_src, x_dst, att; dot: q, k, v; then the edges'.
std::vector<Input> inputs_of(const TwoSided& g, const Form& f) {
  const Shape src{g.num_src, f.width()}, dst{g.num_dst, f.width()}, edge{g.num_edges(), f.side()};
  const double r = f.range;
  std::vector<Input> in;
  switch (f.kind) {
    case Kind::gat: in = {real(src), real({g.num_src, f.heads}, -r, r), real({g.num_dst, f.heads}, f.low, f.low + 2)}; break;
    case Kind::gatv2: in = {real(src), real(dst), real({f.heads, f.channels}, -r, r)}; break;
    case Kind::dot: in = {real(dst, f.low, f.low + 2), real(src, -r, r), real(src)}; break;
  }
  if (f.edges) in.push_back(real(edge));
  for (Input& input : in) input.saved();
  return in;
}

Tensor call(const Graph& graph, const Form& f, const Tensors& in) {
  const EdgeAttentionOptions options = options_of(f, f.edges ? in[3] : Tensor());
  switch (f.kind) {
    case Kind::gat: return gat_attention(graph, in[0], in[1], in[2], options);
    case Kind::gatv2: return gatv2_attention(graph, in[0], in[1], in[2], options);
    case Kind::dot: return dot_attention(graph, in[0], in[1], in[2], f.heads, options);
  }
  return {};
}

Tensor call_weights(const Graph& graph, const Form& f, const Tensors& in) {
  const EdgeAttentionOptions options = options_of(f, f.edges ? in[3] : Tensor());
  switch (f.kind) {
    case Kind::gat: return gat_attention_weights(graph, in[1], in[2], options);
    case Kind::gatv2: return gatv2_attention_weights(graph, in[0], in[1], in[2], options);
    case Kind::dot: return dot_attention_weights(graph, in[0], in[1], f.heads, options);
  }
  return {};
}

/// Softmax weights (E, H), by the plainest route: all scores, then sums by destination.
Array reference_weights(const TwoSided& g, const Form& f, const Arrays& in) {
  const int64_t edges = g.num_edges();
  Array score(Shape{edges, f.heads}), top(Shape{g.num_dst, f.heads}), sum(Shape{g.num_dst, f.heads});
  const auto bend = [&](const Real& z) { return z > Real(0) ? z : Real(f.slope) * z; };
  for (Real& v : top.values) v = Real(-1e30);
  for (int64_t e = 0; e < edges; ++e) {
    const int64_t s = g.src[size_t(e)], d = g.dst[size_t(e)];
    for (int64_t h = 0; h < f.heads; ++h) {
      Real z = 0;
      if (f.kind == Kind::gat) {
        z = in[1](s, h) + in[2](d, h);
        z = bend(f.edges ? z + in[3](e, h) : z);
      } else {
        for (int64_t c = 0; c < f.channels; ++c) {
          const int64_t j = h * f.channels + c;
          if (f.kind == Kind::gatv2) {
            const Real u = in[0](s, j) + in[1](d, j);
            z += in[2](h, c) * bend(f.edges ? u + in[3](e, j) : u);
          } else {
            z += in[0](d, j) * (f.edges ? in[1](s, j) + in[3](e, j) : in[1](s, j));
          }
        }
        if (f.kind == Kind::dot) z = z * Real(1 / std::sqrt(double(f.channels)));
      }
      score(e, h) = z;
      if (z > top(d, h)) top(d, h) = Real(double(z.value));
    }
  }
  for (int64_t e = 0; e < edges; ++e)
    for (int64_t h = 0; h < f.heads; ++h) {
      const int64_t d = g.dst[size_t(e)];
      score(e, h) = exp(score(e, h) - top(d, h));
      sum(d, h) += score(e, h);
    }
  for (int64_t e = 0; e < edges; ++e)
    for (int64_t h = 0; h < f.heads; ++h) score(e, h) = score(e, h) / sum(g.dst[size_t(e)], h);
  return score;
}

Array reference(const TwoSided& g, const Form& f, const Arrays& in) {
  const Array weight = reference_weights(g, f, in);
  Array out(Shape{g.num_dst, f.width()});
  for (int64_t e = 0; e < g.num_edges(); ++e)
    for (int64_t j = 0; j < f.width(); ++j) {
      const int64_t s = g.src[size_t(e)], h = j / f.channels;
      Real value = f.kind == Kind::dot ? in[2](s, j) : in[0](s, j);
      if (f.kind == Kind::dot && f.edges) value = value + in[3](e, j);
      out(g.dst[size_t(e)], j) += Real(f.kept(e, h)) * weight(e, h) * value;
    }
  return out;
}

Case case_of(const TwoSided& g, const Form& f) {
  const Graph graph = g.graph();
  const double k = double(g.largest_degree()) / 4 + double(f.channels) / 4 + 8;
  return {.name = f.name() + " on " + g.name,
          .inputs = inputs_of(g, f),
          .call = [=](const Tensors& in) { return call(graph, f, in); },
          .reference = [=](const Arrays& in) { return reference(g, f, in); },
          .k = k,
          .grad_k = 2 * k,
          // Edges between the same two nodes have gradients that cancel.
          .smooth = (f.kind == Kind::dot && !(f.edges && g.name == "self_loops")) || f.slope == 1};
}

constexpr Kind kKinds[] = {Kind::gat, Kind::gatv2, Kind::dot};

TEST(EdgeAttention, EqualsTheReferenceOnEveryGraph) {
  for (const TwoSided& g : two_sided_graphs())
    for (const Kind kind : kKinds)
      for (const bool edges : {false, true})
        if (g.num_edges() <= 1000) verify(case_of(g, {kind, 2, 3, edges}));
}

TEST(EdgeAttention, LargeGraphsAndHubs) {
  for (const char* name : {"hub", "rmat"})
    for (const Kind kind : kKinds) verify(case_of(TwoSided(graph(name)), {kind, 2, 2, kind != Kind::gatv2, 0.25}));
}

/// Every vector length and its rest, one head and many.
TEST(EdgeAttention, EqualsTheReferenceInEveryForm) {
  const TwoSided g = random_two_sided(7, 5, 30, 4);
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{1, 1},  {1, 3}, {8, 1},  {8, 8},  {4, 32}, {1, 64},
                                                          {1, 41}, {3, 5}, {2, 17}, {19, 2}, {128, 1}};
  for (const auto& [heads, channels] : sizes)
    for (const Kind kind : kKinds)
      for (const bool edges : {false, true}) verify(case_of(g, {kind, heads, channels, edges}));
}

TEST(EdgeAttention, Dropout) {
  const TwoSided g = random_two_sided(7, 11, 60, 1);
  for (const Kind kind : kKinds)
    for (const auto& [heads, channels] : std::vector<std::pair<int64_t, int64_t>>{{1, 3}, {6, 2}, {8, 8}})
      verify(case_of(g, {kind, heads, channels, true, 0.6}));
  // p = 1 drops everything, in the backward pass too.
  Tensors in = make_inputs(inputs_of(g, {Kind::gat, 2, 2}), DType::f32);
  for (Tensor& t : in) t.set_requires_grad();
  const Tensor out = call(g.graph(), {Kind::gat, 2, 2, false, 1}, in);
  EXPECT_TRUE(same_bits(out.detach(), zeros(out.shape())));
  backward(out, ones(out.shape()));
  for (const Tensor& t : in)
    for (const float v : t.grad().span<float>()) EXPECT_EQ(v, 0);
}

/// With slope 1 there is no kink, so that central differences can be taken; slope 0 is a ReLU.
TEST(EdgeAttention, OtherSlopes) {
  const TwoSided g = random_two_sided(7, 5, 30, 4);
  for (const Kind kind : {Kind::gat, Kind::gatv2})
    for (const double slope : {0.0, 1.0}) {
      Case c = case_of(g, {kind, 2, 3, true, 0, slope});
      // Without a kink the destination's side drops out of the softmax: its gradient is 0 but for rounding.
      if (slope == 1) c.inputs[kind == Kind::gat ? 2 : 1].no_grad();
      verify(c);
    }
}

/// Scores far beyond the range of exp, which only the shift by a row's own maximum survives, raised from block to block.
/// Gradients keep their digits, too: log-sum-exp is not rounded to a float.
TEST(EdgeAttention, LargeScores) {
  const TwoSided g = random_two_sided(40, 3, 300, 9);
  for (const Form& f : {Form{.kind = Kind::gat, .heads = 2, .channels = 3, .range = 20, .low = 1000},
                        Form{.kind = Kind::dot, .heads = 1, .channels = 4, .low = 20}}) {
    Case c = case_of(g, f);
    c.smooth = false;  // most weights are 0 or 1, whatever is added to an input
    verify(c);
  }
}

TEST(EdgeAttention, Weights) {
  const Restore restore;
  for (const TwoSided& g : {random_two_sided(7, 11, 60, 1), TwoSided(graph("hub"))})
    for (const Kind kind : kKinds)
      for (const bool edges : {false, true}) {
        const Form f{kind, 3, 5, edges};
        for (const DType dtype : {DType::f32, DType::f64}) {
          const Tensors in = make_inputs(inputs_of(g, f), dtype);
          Arrays arrays;
          for (const Tensor& t : in) arrays.push_back(to_array(t));
          const Array expected = reference_weights(g, f, arrays);
          for (const Isa isa : isas()) {
            set_isa(isa);
            const Array got = to_array(call_weights(g.graph(), f, in));
            ASSERT_EQ(got.shape, expected.shape);
            for (int64_t i = 0; i < got.numel(); ++i)
              ASSERT_NEAR(double(got[i].value), double(expected[i].value),
                          double(expected[i].value) * (dtype == DType::f32 ? 2e-5 : 1e-13))
                  << f.name() << " " << i;
          }
        }
      }
}

/// Logits on the edges alone: each destination is shifted by its own largest, -inf weighs 0, nothing sees its neighbour.
TEST(EdgeAttention, DestinationsDoNotSeeEachOther) {
  const Restore restore;
  const Graph graph = TwoSided("", 1, 4, {0, 0, 0, 0, 0, 0}, {1, 1, 2, 2, 3, 3}).graph();
  const Tensor edge = Tensor::from<float>({1, -1, -kInf, 50, 1000, 1001}, {6, 1});
  for (const Isa isa : isas()) {
    set_isa(isa);
    const EdgeAttentionOptions options{.edge = edge, .slope = 1};
    const Tensor weights = gat_attention_weights(graph, zeros({1, 1}), zeros({4, 1}), options);
    const float expected[] = {0.8807971f, 0.1192029f, 0, 1, 0.2689414f, 0.7310586f};
    for (int i = 0; i < 6; ++i) EXPECT_NEAR(weights.data<float>()[i], expected[i], 1e-6f) << i;
    const Tensor out = gat_attention(graph, Tensor::from<float>({2}, {1, 1}), zeros({1, 1}), zeros({4, 1}), options);
    EXPECT_EQ(out.data<float>()[0], 0);
    for (int i = 1; i < 4; ++i) EXPECT_NEAR(out.data<float>()[i], 2, 1e-6f);
  }
}

/// NaN, +inf and a row of -inf give NaN in their own row and head; what comes before and after in other blocks does not
/// matter, and a whole block of -inf at the beginning of a row does no harm.
TEST(EdgeAttention, InfinityAndNaN) {
  const Restore restore;
  constexpr int64_t kEdges = 200;
  TwoSided g("", 1, 5, {}, {});
  std::vector<float> logits;
  for (int64_t d = 0; d < 5; ++d)
    for (int64_t i = 0; i < kEdges; ++i) {
      g.src.push_back(0);
      g.dst.push_back(int32_t(d));
      const float special[] = {i == 150 ? std::nanf("") : 1, i == 150 ? kInf : 1, -kInf, i < 100 ? -kInf : 1, 1};
      logits.insert(logits.end(), {special[d], 0});
    }
  for (const Isa isa : isas()) {
    set_isa(isa);
    Tensor x = Tensor::from<float>({3, 4}, {1, 2}), edge = Tensor::from(logits, Shape{5 * kEdges, 2});
    x.set_requires_grad();
    edge.set_requires_grad();
    const EdgeAttentionOptions options{.edge = edge};
    const Tensor out = gat_attention(g.graph(), x, zeros({1, 2}), zeros({5, 2}), options);
    for (int64_t d = 0; d < 5; ++d) {
      EXPECT_EQ(std::isnan(out.data<float>()[2 * d]), d < 3) << d;
      EXPECT_NEAR(out.data<float>()[2 * d + 1], 4, 1e-4f);
    }
    EXPECT_NEAR(out.data<float>()[6], 3, 1e-4f);
    backward(out, ones(out.shape()));
    const Tensor g_edge = edge.grad();
    for (int64_t e = 0; e < 5 * kEdges; ++e) {
      EXPECT_EQ(std::isnan(g_edge.data<float>()[2 * e]), e < 3 * kEdges) << e;
      EXPECT_FALSE(std::isnan(g_edge.data<float>()[2 * e + 1])) << e;
    }
    const Tensor weights = gat_attention_weights(g.graph(), zeros({1, 2}), zeros({5, 2}), options);
    EXPECT_EQ(weights.data<float>()[2 * (3 * kEdges + 99)], 0);
    EXPECT_NEAR(weights.data<float>()[2 * (3 * kEdges + 100)], 0.01f, 1e-6f);
  }
}

/// Kernels fetch rows of large arrays ahead; what comes out is the same, bit by bit.
TEST(EdgeAttention, LargeArraysGiveTheSameBits) {
  const Restore restore;
  const TwoSided small = random_two_sided(100, 80, 3000, 2);
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t megabytes : {3, 20}) {
      const Form f{Kind::gat, 2, 8};
      const int64_t apart = (megabytes << 20) / (f.width() * 4 * 100) + 1;
      TwoSided large = small;
      large.num_src *= apart;
      for (int32_t& s : large.src) s *= int32_t(apart);
      const Tensors in = make_inputs(inputs_of(small, f), DType::f32);
      const auto spread = [&](const Tensor& x) {
        Tensor far = zeros(Shape{large.num_src, x.dim(1)});
        for (int64_t s = 0; s < small.num_src; ++s)
          std::copy_n(x.data<float>() + s * x.dim(1), x.dim(1), far.mutable_data<float>() + s * apart * x.dim(1));
        return far;
      };
      const Tensor near = call(small.graph(), f, in), out = call(large.graph(), f, {spread(in[0]), spread(in[1]), in[2]});
      EXPECT_TRUE(same_bits(near, out)) << name(isa) << " " << megabytes;
    }
  }
}

/// Nothing grows with edges x columns, nor with edges x heads.
TEST(EdgeAttention, MemoryIsOfNodes) {
  const int64_t nodes = 2000, edges = 400000;
  const TwoSided g = random_two_sided(nodes, nodes, edges, 5);
  const Graph graph = g.graph();
  graph.transpose();
  for (const Kind kind : kKinds) {
    const Form f{kind, 8, 8, false, 0.5};
    Tensors in = make_inputs(inputs_of(g, f), DType::f32);
    for (Tensor& t : in) t.set_requires_grad();
    call(graph, f, in);  // plans of the graph
    const int64_t before = memory_stats().used_bytes;
    reset_peak_memory();
    backward(call(graph, f, in), ones(Shape{nodes, f.width()}));
    EXPECT_LT(memory_stats().peak_bytes - before, 12 * nodes * f.width() * 4) << f.name();
    EXPECT_LT(memory_stats().peak_bytes - before, edges * f.heads * 4) << f.name();
  }
}

TEST(EdgeAttention, Errors) {
  const Graph graph = TwoSided("", 3, 2, {0, 1}, {0, 1}).graph();
  const Tensor x = ones({3, 4}), xd = ones({2, 4}), s = ones({3, 2}), d = ones({2, 2}), att = ones({2, 2});
  const auto gat = [&](const Tensor& a, const Tensor& b, const Tensor& c, const EdgeAttentionOptions& o = {}) {
    return [=] { gat_attention(graph, a, b, c, o); };
  };
  verify_errors({
      {[] {
         gat_attention(Graph(), ones({3, 4}), ones({3, 2}), ones({2, 2}));
       },
       "InvalidArgument: gat_attention: the graph is undefined"},
      {gat({}, s, d), "InvalidArgument: gat_attention: x is undefined"},
      {gat(x, {}, d), "InvalidArgument: gat_attention: a_src is undefined"},
      {gat(x, s, {}), "InvalidArgument: gat_attention: a_dst is undefined"},
      {gat(zeros({3, 4}, DType::i64), s, d), "Unsupported: gat_attention: dtype i64 is not supported, use f32 or f64"},
      {gat(ones({3, 5}), s, d),
       "InvalidArgument: gat_attention: x has shape [3, 5] but 2 heads need [num_src, heads x channels]"},
      {gat(ones({2, 4}), s, d), "InvalidArgument: gat_attention: x has shape [2, 4] but 3 sources need [3, 4]"},
      {gat(x, ones({2, 2}), d), "InvalidArgument: gat_attention: a_src has shape [2, 2] but 3 sources need [3, 2]"},
      {gat(x, s, s), "InvalidArgument: gat_attention: a_dst has shape [3, 2] but 2 destinations need [2, 2]"},
      {gat(x, s, ones({2, 2}, DType::f64)), "InvalidArgument: gat_attention: a_dst is f64 but needs f32"},
      {gat(x, s, d, {.edge = ones({3, 2})}),
       "InvalidArgument: gat_attention: edge has shape [3, 2] but 2 edges need [2, 2]"},
      {gat(x, s, d, {.slope = -0.5}), "InvalidArgument: gat_attention: slope is -0.5 but needs to be 0 or more"},
      {gat(x, s, d, {.dropout = 1.5}), "InvalidArgument: gat_attention: dropout is 1.5 but needs to be in [0, 1]"},
      {gat(ones({3, 0}), s, d),
       "InvalidArgument: gat_attention: 2 heads of 0 channels were given but it needs 1 or more of both"},
      {gat(ones({3, 129}), ones({3, 129}), ones({2, 129})),
       "Unsupported: gat_attention: 129 heads were given but at most 128 are supported"},
      {[&] { gatv2_attention(graph, x, xd, ones({4})); },
       "InvalidArgument: gatv2_attention: att needs to be [heads, channels] of x_src's dtype"},
      {[&] { gatv2_attention(graph, x, x, att); },
       "InvalidArgument: gatv2_attention: x_dst has shape [3, 4] but 2 destinations need [2, 4]"},
      {[&] { dot_attention(graph, xd, x, x, 3); },
       "InvalidArgument: dot_attention: k has shape [3, 4] but 3 heads need [num_src, heads x channels]"},
      {[&] { dot_attention(graph, xd, x, xd, 2); },
       "InvalidArgument: dot_attention: v has shape [2, 4] but 3 sources need [3, 4]"},
      {[&] {
         dot_attention(graph, xd, x, x, 2, {.edge = ones({2, 2})});
       },
       "InvalidArgument: dot_attention: edge has shape [2, 2] but 2 edges need [2, 4]"},
  });
}

}  // namespace
}  // namespace tessera::test
