#include "tessera/scatter/segment_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/scatter/segment_logsumexp.h"
#include "tessera/tests/scatter/segments.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// By segment and column, sums of exponentials of x less the column's maximum; that maximum in `top`.
Array exponential_sums(const Array& x, const Array& index, int64_t size, Array& top) {
  const int64_t width = x.dim(1);
  top = Array(Shape{size, width});
  Array out(top.shape);
  for (Real& v : top.values) v = Real(-1e30);
  // The maximum is a constant: results do not depend on it.
  for (int64_t e = 0; e < x.dim(0); ++e)
    for (int64_t j = 0; j < width; ++j)
      if (x(e, j) > top(index.id(e), j)) top(index.id(e), j) = Real(double(x(e, j).value));
  for (int64_t e = 0; e < x.dim(0); ++e)
    for (int64_t j = 0; j < width; ++j) out(index.id(e), j) += exp(x(e, j) - top(index.id(e), j));
  return out;
}

Case softmax_case(const EdgeList& g, int64_t width, double range) {
  const Tensor index = Tensor::from(g.dst, Shape{g.num_edges()});
  const SegmentPlan plan = SegmentPlan::from_index(index, g.num_nodes);
  int64_t longest = 1;
  for (const int64_t n : plan.counts().to_vector<int64_t>()) longest = std::max(longest, n);
  return {.name = "segment_softmax " + g.name + " " + std::to_string(width),
          .inputs = {real(Shape{g.num_edges(), width}, -range, range)},
          .call = [=](const Tensors& in) { return segment_softmax(in[0], plan); },
          .reference =
              [=](const Arrays& in) {
                const Array ids = to_array(index);
                Array top, out(in[0].shape);
                const Array sums = exponential_sums(in[0], ids, plan.num_segments(), top);
                for (int64_t e = 0; e < out.dim(0); ++e)
                  for (int64_t j = 0; j < width; ++j) out(e, j) = exp(in[0](e, j) - top(ids.id(e), j)) / sums(ids.id(e), j);
                return out;
              },
          .k = double(longest) / 16 + 4,
          .grad_k = double(longest) / 16 + 6,
          .smooth = range < 10,
          .saves_output = true};
}

TEST(SegmentSoftmax, EqualsTheReferenceOnEveryGraph) {
  for (const EdgeList& g : graphs())
    for (const int64_t width : {1, 4}) verify(softmax_case(g, width, 2));
}

TEST(SegmentSoftmax, EqualsTheReferenceAtEveryWidth) {
  for (const int64_t width : {0, 1, 2, 3, 8, 17, 64, 129}) verify(softmax_case(graph("duplicates"), width, 3));
  for (const int64_t width : {1, 8, 70}) verify(softmax_case(graph("star"), width, 20));
  verify(softmax_case(graph("hub"), 8, 5));
}

Case logsumexp_case(const EdgeList& g, int64_t width, bool with_initial) {
  const Tensor index = Tensor::from(g.dst, Shape{g.num_edges()});
  const SegmentPlan plan = SegmentPlan::from_index(index, g.num_nodes);
  int64_t longest = 1;
  for (const int64_t n : plan.counts().to_vector<int64_t>()) longest = std::max(longest, n);
  Case c{.name = "segment_logsumexp " + g.name + " " + std::to_string(width) + (with_initial ? " with initial" : ""),
         .inputs = {real(Shape{g.num_edges(), width}, -3, 3).saved()},
         .call = [=](const Tensors& in) { return segment_logsumexp(in[0], plan, with_initial ? in[1] : Tensor()); },
         .reference =
             [=](const Arrays& in) {
               Array top;
               Array out = exponential_sums(in[0], to_array(index), plan.num_segments(), top);
               for (int64_t i = 0; i < out.numel(); ++i) {
                 if (with_initial) {
                   if (top[i].value < -1e29L) top[i] = Real(0);
                   out[i] += exp(in[1][i] - top[i]);
                 }
                 out[i] = out[i].value == 0 ? Real(-std::numeric_limits<double>::infinity()) : log(out[i]) + top[i];
               }
               return out;
             },
         .k = double(longest) / 16 + 4,
         .grad_k = double(longest) / 16 + 6,
         .smooth = with_initial || g.name != "empty_ends",
         .saves_output = true};
  if (with_initial) c.inputs.push_back(real(Shape{g.num_nodes, width}, -3, 3).saved());
  return c;
}

TEST(SegmentLogsumexp, EqualsTheReference) {
  for (const EdgeList& g : graphs()) {
    if (g.name == "empty_ends" || g.name == "rmat" || g.name == "no_edges" || g.name == "one_node" || g.name == "path")
      continue;
    verify(logsumexp_case(g, 3, false));
  }
  for (const EdgeList& g : graphs()) verify(logsumexp_case(g, 2, true));
  for (const int64_t width : kWidths) verify(logsumexp_case(graph("self_loops"), width, true));
}

/// H09.
TEST(SegmentSoftmax, SegmentsDoNotSeeEachOther) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({1, 1, 2, 2}, Shape{4}), 3);
    const std::vector<float> y = segment_softmax(Tensor::from<float>({1, -1, -kInf, 50}, Shape{4}), plan).to_vector<float>();
    EXPECT_FLOAT_EQ(y[0], 0.8807971f);
    EXPECT_FLOAT_EQ(y[1], 0.1192029f);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 1);
    const SegmentPlan one = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 2}, Shape{2}));
    const std::vector<float> z = segment_softmax(Tensor::from<float>({1000, 1001}, Shape{2}), one).to_vector<float>();
    EXPECT_FLOAT_EQ(z[0], 0.2689414f);
    EXPECT_FLOAT_EQ(z[1], 0.7310586f);
  }
}

/// A hub whose first piece is -inf alone and whose second lies far below 0.
TEST(SegmentSoftmax, PiecesOfAHubShareOneMaximum) {
  const int64_t n = 5000;
  Tensor x = full(Shape{n}, -kInf);
  for (int64_t e = 4096; e < n; ++e) x.mutable_data<float>()[e] = -300;
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, n}, Shape{2}));
  const Tensor y = segment_softmax(x, plan);
  EXPECT_EQ(y.data<float>()[0], 0);
  EXPECT_FLOAT_EQ(y.data<float>()[n - 1], 1.0f / 904);
  EXPECT_FLOAT_EQ(float(segment_logsumexp(x, plan).item()), -300 + std::log(904.0f));
}

TEST(SegmentSoftmax, NanStaysInItsSegment) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 1, 0, 1}, Shape{4}), 2);
  const Tensor y = segment_softmax(Tensor::from<float>({std::nanf(""), 1, 2, 1}, Shape{4}), plan);
  EXPECT_TRUE(std::isnan(y.data<float>()[0]) && std::isnan(y.data<float>()[2]));
  EXPECT_EQ(y.data<float>()[1], 0.5f);
}

/// H10: slots that receive nothing are -inf, with zero gradients everywhere; with a content of zeros that takes part, 0.
TEST(SegmentLogsumexp, UntouchedSegments) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({1, 1, 4}, Shape{3}), 6);
  Tensor x = Tensor::from<float>({0, 1, 4}, Shape{3}), zero = zeros(Shape{6});
  x.set_requires_grad();
  zero.set_requires_grad();
  const Tensor loss = Tensor::from<float>({0, 1, 0, 0, 1, 0}, Shape{6});
  const Tensor out = segment_logsumexp(x, plan);
  const std::vector<float> y = out.to_vector<float>();
  EXPECT_FLOAT_EQ(y[1], 1.3132617f);
  EXPECT_FLOAT_EQ(y[4], 4);
  for (const size_t s : {0, 2, 3, 5}) EXPECT_EQ(y[s], -kInf);
  backward(out, loss);
  const std::vector<float> g = x.grad().to_vector<float>();
  EXPECT_FLOAT_EQ(g[0], 0.2689414f);
  EXPECT_FLOAT_EQ(g[1], 0.7310586f);
  EXPECT_FLOAT_EQ(g[2], 1);
  const Tensor with_zeros = segment_logsumexp(x, plan, zero);
  const std::vector<float> z = with_zeros.to_vector<float>();
  EXPECT_FLOAT_EQ(z[1], 1.5514447f);
  EXPECT_FLOAT_EQ(z[4], 4.0181499f);
  for (const size_t s : {0, 2, 3, 5}) EXPECT_EQ(z[s], 0);
  backward(with_zeros, loss);
  for (const float v : x.grad().to_vector<float>()) EXPECT_TRUE(std::isfinite(v));
  EXPECT_EQ(zero.grad().data<float>()[0], 0);
  // -inf alone: nothing to differentiate.
  Tensor lost = full(Shape{3}, -kInf);
  lost.set_requires_grad();
  backward(segment_logsumexp(lost, plan), ones(Shape{6}));
  EXPECT_EQ(lost.grad().to_vector<float>(), std::vector<float>(3, 0));
}

TEST(SegmentSoftmax, Errors) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 1, 1}, Shape{3}), 2);
  const Tensor x = ones(Shape{3, 4});
  verify_errors({
      {[&] { segment_softmax(x, SegmentPlan()); }, "InvalidArgument: segment_softmax: the plan is undefined"},
      {[&] { segment_softmax(Tensor(), plan); }, "InvalidArgument: segment_softmax: x is undefined"},
      {[&] { segment_softmax(ones(Shape{2}), plan); },
       "InvalidArgument: segment_softmax: x has shape [2] but the plan has 3 rows, so it needs [3, ...]"},
      {[&] { segment_softmax(ones(Shape{3}, DType::bf16), plan); },
       "Unsupported: segment_softmax: dtype bf16 is not supported, use f32 or f64"},
      {[&] { segment_logsumexp(ones(Shape{2}), plan); },
       "InvalidArgument: segment_logsumexp: x has shape [2] but the plan has 3 rows, so it needs [3, ...]"},
      {[&] { segment_logsumexp(ones(Shape{3}, DType::f16), plan); },
       "Unsupported: segment_logsumexp: dtype f16 is not supported, use f32 or f64"},
      {[&] {
         segment_logsumexp(x, plan, ones(Shape{3, 4}));
       },
       "InvalidArgument: segment_logsumexp: initial has shape [3, 4] but the output has [2, 4]"},
      {[&] {
         segment_logsumexp(x, plan, ones(Shape{2, 4}, DType::f64));
       },
       "InvalidArgument: segment_logsumexp: initial is f64 but the rows are f32"},
  });
}

}  // namespace
}  // namespace tessera::test
