#include "tessera/scatter/segment_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/storage.h"
#include "tessera/scatter/gather.h"
#include "tessera/tests/scatter/segments.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor index_of(const EdgeList& g) { return Tensor::from(g.dst, Shape{g.num_edges()}); }

Case reduce_case(const EdgeList& g, int64_t width, Reduce reduce, Before before = Before::nothing) {
  const Tensor index = index_of(g);
  const SegmentPlan plan = SegmentPlan::from_index(index, g.num_nodes);
  const bool mul = reduce == Reduce::mul, best = reduce == Reduce::max || reduce == Reduce::min;
  std::vector<int64_t> count(size_t(g.num_nodes) + 1);
  int64_t longest = 1;
  for (const int32_t d : g.dst) longest = std::max(longest, ++count[size_t(d)]);
  const Shape shape{g.num_edges(), width};
  Case c{.name = std::string("segment_reduce ") + name(reduce) + " " + g.name + " " + std::to_string(width) + " before " +
                 std::to_string(int(before)),
         .inputs = {best  ? apart(shape)
                    : mul ? real(shape, 0.7, 1.4)
                          : real(shape)},
         .call =
             [=](const Tensors& in) {
               SegmentReduceOptions options;
               if (before != Before::nothing) options.initial = in[1];
               options.include_initial = before == Before::include;
               return segment_reduce(in[0], plan, reduce, options);
             },
         .reference =
             [=](const Arrays& in) {
               return scatter_reference(in[0], to_array(index), plan.num_segments(), reduce, before,
                                        before == Before::nothing ? Array() : in[1]);
             },
         .k = best ? 0.0 : double(longest) / 4 + 2,
         .grad_k = mul ? double(longest) : 2,
         .smooth = mul ? longest < 8 : g.num_edges() * width < 250 || !best};
  if (mul) c.inputs[0].saved();
  if (before != Before::nothing) {
    c.inputs.push_back(best ? apart(Shape{g.num_nodes, width}, -0.9, 0.9) : real(Shape{g.num_nodes, width}, 0.5, 1.5));
    if (mul && before == Before::include) c.inputs[1].saved();
    if (best) c.smooth = false;
  }
  return c;
}

TEST(SegmentReduce, EqualsTheReferenceOnEveryGraph) {
  for (const EdgeList& g : graphs())
    for (const Reduce reduce : kReductions)
      if (reduce != Reduce::mul || g.name != "hub") verify(reduce_case(g, g.num_edges() > 1000 ? 3 : 5, reduce));
}

TEST(SegmentReduce, EqualsTheReferenceAtEveryWidth) {
  for (const int64_t width : {0, 1, 2, 3, 4, 5, 8, 17, 31, 33, 41, 64, 100, 129, 300})
    for (const Reduce reduce : kReductions) verify(reduce_case(graph("duplicates"), width, reduce));
}

/// The pieces of a hub, joined.
TEST(SegmentReduce, HubsOfEveryWidth) {
  for (const int64_t width : {1, 8, 17})
    for (const Reduce reduce : {Reduce::sum, Reduce::max}) verify(reduce_case(graph("hub"), width, reduce, Before::include));
}

TEST(SegmentReduce, InitialContent) {
  for (const char* which : {"empty_ends", "star", "no_edges"})
    for (const Before before : {Before::keep, Before::include})
      for (const Reduce reduce : kReductions)
        for (const int64_t width : {1, 5, 17}) verify(reduce_case(graph(which), width, reduce, before));
}

TEST(SegmentReduce, SixteenBits) {
  for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min})
    for (const int64_t width : {1, 3, 8, 17, 33, 64})
      for (const Before before : {Before::nothing, Before::include}) {
        if (before == Before::include && width != 17) continue;
        Case c = reduce_case(graph("star"), width, reduce, before);
        c.dtypes = {DType::bf16, DType::f16};
        // Rounding to 16 bits makes ties of some values that are apart: those of a star's leaves, but not the winners.
        c.k = reduce == Reduce::sum || reduce == Reduce::mean ? 1 : 0;
        verify(c);
      }
}

/// Without an order: consecutive rows.
TEST(SegmentReduce, ByOffsets) {
  const Tensor index = Tensor::from<int32_t>({0, 0, 2, 2, 2, 3}, Shape{6});
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 2, 2, 5, 6}, Shape{5}));
  for (const Reduce reduce : kReductions)
    for (const int64_t width : kWidths) {
      Case c{.name = std::string("by offsets ") + name(reduce) + " " + std::to_string(width),
             .inputs = {apart(Shape{6, width})},
             .call = [=](const Tensors& in) { return segment_reduce(in[0], plan, reduce); },
             .reference = [=](const Arrays& in) { return scatter_reference(in[0], to_array(index), 4, reduce); },
             .k = 3,
             .grad_k = 4,
             .smooth = width < 40};
      if (reduce == Reduce::mul) c.inputs[0].saved();
      verify(c);
    }
}

TEST(SegmentReduce, RowsOfAnyShape) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({1, 0, 1}, Shape{3}), 2);
  EXPECT_EQ(segment_reduce(Tensor::from<float>({1, 2, 3}, Shape{3}), plan).to_vector<float>(), (std::vector<float>{2, 4}));
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Shape{3, 2, 2});
  EXPECT_EQ(segment_reduce(x, plan).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(segment_reduce(x, plan).to_vector<float>(), (std::vector<float>{5, 6, 7, 8, 10, 12, 14, 16}));
}

/// H01: the start value shows in empty segments only.
TEST(SegmentReduce, MaximumOfNegativeValues) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 1, 0}, Shape{3}), 2);
  Tensor winner;
  const SegmentReduceOptions options{.initial = {}, .winner = &winner};
  EXPECT_EQ(
      segment_reduce(Tensor::from<float>({-0.1f, -0.2f, -0.3f}, Shape{3}), plan, Reduce::max, options).to_vector<float>(),
      (std::vector<float>{-0.1f, -0.2f}));
  EXPECT_EQ(winner.to_vector<int64_t>(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(segment_reduce(Tensor::from<float>({0.1f, 0.2f, 0.3f}, Shape{3}), plan, Reduce::min).to_vector<float>(),
            (std::vector<float>{0.1f, 0.2f}));
  EXPECT_EQ(segment_reduce(Tensor::from<int32_t>({-5, -7, -6}, Shape{3}), plan, Reduce::max, options).to_vector<int32_t>(),
            (std::vector<int32_t>{-5, -7}));
  EXPECT_EQ(winner.to_vector<int64_t>(), (std::vector<int64_t>{0, 1}));
}

/// H02: an empty segment's winner is -1, which no gather takes.
TEST(SegmentReduce, WinnerOfAnEmptySegment) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 0, 2, 2}, Shape{4}), 3);
  Tensor x = Tensor::from<float>({1, 3, 2, 5}, Shape{4}), winner;
  x.set_requires_grad();
  const Tensor out = segment_reduce(x, plan, Reduce::max, {.initial = {}, .winner = &winner});
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{3, 0, 5}));
  EXPECT_EQ(winner.to_vector<int64_t>(), (std::vector<int64_t>{1, -1, 3}));
  backward(out, Tensor::from<float>({10, 20, 30}, Shape{3}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 10, 0, 30}));
  EXPECT_EQ(error_of([&] { gather(x.detach(), winner); }),
            "InvalidArgument: gather: index[1] is -1 but needs to be in [0, 4)");
}

/// H07, at widths that take scalar, vector and overlapped columns, with each order of the rows.
TEST(SegmentReduce, NanAndInfinities) {
  const Restore restore;
  const std::vector<float> values = {kNan, 5, 5, kNan, -kInf, -kInf, kInf, 1};
  const std::vector<float> max = {kNan, kNan, -kInf, kInf, 0}, min = {kNan, kNan, -kInf, 1, 0};
  for (const std::vector<int32_t>& ids : {std::vector<int32_t>{0, 0, 1, 1, 2, 2, 3, 3}})
    for (const int64_t width : {1, 3, 33})
      for (const Isa isa : isas()) {
        set_isa(isa);
        std::vector<float> wide;
        for (const float v : values) wide.insert(wide.end(), size_t(width), v);
        const Tensor x = Tensor::from(wide, Shape{8, width});
        const SegmentPlan plan = SegmentPlan::from_index(Tensor::from(ids, Shape{8}), 5);
        const Tensor larger = segment_reduce(x, plan, Reduce::max), smaller = segment_reduce(x, plan, Reduce::min);
        for (int64_t s = 0; s < 5; ++s)
          for (int64_t j = 0; j < width; ++j) {
            const float got[2] = {larger.data<float>()[s * width + j], smaller.data<float>()[s * width + j]};
            const float expected[2] = {max[size_t(s)], min[size_t(s)]};
            for (int i = 0; i < 2; ++i)
              EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
                  << name(isa) << " " << width << " segment " << s << " gave " << got[i];
          }
      }
}

/// H08: a half sum would stall at 256.
TEST(SegmentReduce, HalfMeanOfALongSegment) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 16}) {
      for (const int64_t n : {10000, 70000}) {
        Tensor x = full(Shape{n, width}, 0.1, DType::f16);
        const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, n}, Shape{2}));
        const float mean = float(segment_reduce(x, plan, Reduce::mean).data<f16>()[width - 1]);
        EXPECT_EQ(mean, float(f16(0.1f))) << n << " " << width << " " << name(isa);
      }
    }
  }
}

/// H14: the lowest row gets the whole gradient.
TEST(SegmentReduce, TiesGoToTheLowestRow) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t width : {1, 3, 17}) {
      for (const std::vector<float>& values : {std::vector<float>{3, 3, 1}, {0, 0, 0}, {-0.0f, 0, 0}, {kNan, kNan, 7}})
        for (const Reduce reduce : {Reduce::max, Reduce::min}) {
          if (reduce == Reduce::min && values[0] == 3) continue;
          std::vector<float> wide;
          for (const float v : values) wide.insert(wide.end(), size_t(width), v);
          Tensor x = Tensor::from(wide, Shape{3, width});
          x.set_requires_grad();
          // Segment 1 comes between, so that the plan has an order.
          const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 0, 0}, Shape{3}), 2);
          const Tensor out = segment_reduce(x, plan, reduce);
          backward(out, ones(out.shape()));
          for (int64_t i = 0; i < 3 * width; ++i) EXPECT_EQ(x.grad().data<float>()[i], i < width ? 1.0f : 0.0f);
        }
    }
  }
}

/// The same in a hub, where equal values lie in different pieces.
TEST(SegmentReduce, TiesAcrossThePiecesOfAHub) {
  const int64_t n = 9000;
  Tensor x = zeros(Shape{n, 3});
  for (const int64_t row : {4200, 8500}) x.mutable_data<float>()[row * 3] = 5;
  x.mutable_data<float>()[8999 * 3 + 1] = kNan;
  x.set_requires_grad();
  Tensor winner;
  const Tensor out = segment_reduce(x, SegmentPlan::from_offsets(Tensor::from<int64_t>({0, n}, Shape{2})), Reduce::max,
                                    {.initial = {}, .winner = &winner});
  EXPECT_EQ(winner.to_vector<int64_t>(), (std::vector<int64_t>{4200, 8999, 0}));
}

/// H15.
TEST(SegmentReduce, GradientOfAProductWithZeros) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 0, 0}, Shape{3}), 1);
  const auto gradient = [&](std::initializer_list<float> values) {
    Tensor x = Tensor::from(values, Shape{3});
    x.set_requires_grad();
    backward(segment_reduce(x, plan, Reduce::mul), ones(Shape{1}));
    return x.grad().to_vector<float>();
  };
  EXPECT_EQ(gradient({0, 2, 3}), (std::vector<float>{6, 0, 0}));
  EXPECT_EQ(gradient({0, 0, 3}), (std::vector<float>{0, 0, 0}));
}

/// H16: a preset that takes no part.
TEST(SegmentReduce, MaximumWithoutTheInitialContent) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 0, 0, 0, 0}, Shape{5}), 2);
  Tensor x = Tensor::from<float>({0.3f, -1.2f, 2.0f, 0.7f, -0.5f}, Shape{5}),
         preset = Tensor::from<float>({-kInf, -kInf}, Shape{2});
  x.set_requires_grad();
  preset.set_requires_grad();
  const Tensor out = segment_reduce(x, plan, Reduce::max, {.initial = preset, .include_initial = false});
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{2, -kInf}));
  backward(out, Tensor::from<float>({1, 0}, Shape{2}));
  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{0, 0, 1, 0, 0}));
  EXPECT_EQ(preset.grad().to_vector<float>(), (std::vector<float>{0, 0}));
}

/// Beyond the output only what the contract says: 4 bytes an element for winners.
TEST(SegmentReduce, Memory) {
  const int64_t rows = 20000, width = 64, segments = 50;
  const SegmentPlan plan = SegmentPlan::from_index(make_inputs({ids(Shape{rows}, segments)}, DType::f32)[0], segments);
  Tensor x = ones(Shape{rows, width});
  for (const Reduce reduce : kReductions) {
    segment_reduce(x, plan, reduce);
    const int64_t before = memory_stats().used_bytes;
    reset_peak_memory();
    const Tensor out = segment_reduce(x, plan, reduce);
    EXPECT_LE(memory_stats().peak_bytes - before, 4 * 4 * segments * width + 65536) << name(reduce);
  }
}

TEST(SegmentReduce, Errors) {
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from<int32_t>({0, 1, 1}, Shape{3}), 2);
  const Tensor x = ones(Shape{3, 4});
  Tensor winner;
  verify_errors({
      {[&] { segment_reduce(x, SegmentPlan()); }, "InvalidArgument: segment_reduce: the plan is undefined"},
      {[&] { segment_reduce(Tensor(), plan); }, "InvalidArgument: segment_reduce: x is undefined"},
      {[&] {
         segment_reduce(ones(Shape{2, 4}), plan);
       },
       "InvalidArgument: segment_reduce: x has shape [2, 4] but the plan has 3 rows, so it needs [3, ...]"},
      {[&] { segment_reduce(ones(Shape{}), plan); },
       "InvalidArgument: segment_reduce: x has shape [] but the plan has 3 rows, so it needs [3, ...]"},
      {[&] {
         segment_reduce(x, plan, Reduce::sum, {.initial = ones(Shape{2, 3})});
       },
       "InvalidArgument: segment_reduce: initial has shape [2, 3] but the output has [2, 4]"},
      {[&] {
         segment_reduce(x, plan, Reduce::sum, {.initial = ones(Shape{2, 4}, DType::f64)});
       },
       "InvalidArgument: segment_reduce: initial is f64 but the rows are f32"},
      {[&] { segment_reduce(x, plan, Reduce::sum, {.initial = {}, .winner = &winner}); },
       "InvalidArgument: segment_reduce: reduce sum has no winner, only max and min have"},
      {[&] { segment_reduce(ones(Shape{3}, DType::i64), plan); },
       "Unsupported: segment_reduce: dtype i64 is not supported, use f32, f64, bf16 or f16"},
      {[&] { segment_reduce(ones(Shape{3}, DType::bf16), plan, Reduce::mul); },
       "Unsupported: segment_reduce: reduce mul with dtype bf16 is not supported, use f32 or f64"},
      {[&] { segment_reduce(ones(Shape{3}, DType::i32), plan); },
       "Unsupported: segment_reduce: reduce sum with dtype i32 is not supported, use max or min"},
      {[&] { segment_var(ones(Shape{2}), plan); },
       "InvalidArgument: segment_var: x has shape [2] but the plan has 3 rows, so it needs [3, ...]"},
      {[&] { segment_std(ones(Shape{3}, DType::f16), plan); },
       "Unsupported: segment_std: dtype f16 is not supported, use f32 or f64"},
  });
}

Case deviation_case(const EdgeList& g, int64_t width, int correction, bool root) {
  const Tensor index = index_of(g);
  const SegmentPlan plan = SegmentPlan::from_index(index, g.num_nodes);
  int64_t longest = 1;
  for (const int64_t n : plan.counts().to_vector<int64_t>()) longest = std::max(longest, n);
  return {.name = (root ? "segment_std " : "segment_var ") + g.name + " " + std::to_string(width),
          .inputs = {apart(Shape{g.num_edges(), width}).saved()},
          .call =
              [=](const Tensors& in) {
                return root ? segment_std(in[0], plan, correction) : segment_var(in[0], plan, correction);
              },
          .reference =
              [=](const Arrays& in) {
                const Array mean = scatter_reference(in[0], to_array(index), plan.num_segments(), Reduce::mean);
                Array out(mean.shape);
                const Tensor counts = plan.counts();
                for (int64_t e = 0; e < index.numel(); ++e)
                  for (int64_t j = 0; j < width; ++j) {
                    const int64_t s = index.data<int32_t>()[e];
                    const Real d = in[0](e, j) - mean(s, j);
                    out(s, j) += d * d;
                  }
                for (int64_t s = 0; s < plan.num_segments(); ++s)
                  for (int64_t j = 0; j < width; ++j) {
                    out(s, j) = out(s, j) / Real(double(std::max<int64_t>(counts.data<int64_t>()[s] - correction, 1)));
                    if (root) out(s, j) = out(s, j).value == 0 ? Real(0) : sqrt(out(s, j));
                  }
                return out;
              },
          .k = double(longest) / 4 + 4,
          .grad_k = double(longest) / 4 + 8,
          .smooth = !root,
          .saves_output = root};
}

TEST(SegmentReduce, VarianceAndDeviation) {
  for (const char* which : {"empty", "no_edges", "empty_ends", "duplicates", "star"})
    for (const int correction : {0, 1})
      for (const bool root : {false, true}) verify(deviation_case(graph(which), 5, correction, root));
  for (const int64_t width : kWidths) verify(deviation_case(graph("duplicates"), width, 1, false));
}

/// A large mean does not swallow the variance.
TEST(SegmentReduce, VarianceFarFromZero) {
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 4}, Shape{2}));
  const Tensor x = Tensor::from<float>({100000, 100001, 100002, 100003}, Shape{4});
  EXPECT_EQ(segment_var(x, plan, 0).item(), 1.25);
}

}  // namespace
}  // namespace tessera::test
