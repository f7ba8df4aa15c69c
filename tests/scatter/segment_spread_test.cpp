#include "tessera/scatter/segment_spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

// What the reductions do with it is in segment_reduce_test.cpp; here are results large enough to be written past the caches.

TEST(SegmentSpread, LargeResults) {
  const Restore restore;
  const int64_t rows = 70000, segments = 900;
  const Tensor index = make_inputs({ids(Shape{rows}, segments)}, DType::f32)[0];
  const SegmentPlan plan = SegmentPlan::from_index(index, segments);
  const int32_t* segment = index.data<int32_t>();
  std::vector<int32_t> place(static_cast<size_t>(rows)), next(static_cast<size_t>(segments));
  for (int64_t e = 0; e < rows; ++e) place[size_t(e)] = next[size_t(segment[e])]++;
  for (const int64_t width : {64, 65})
    for (const Isa isa : isas()) {
      set_isa(isa);
      const Tensor grad = make_inputs({real(Shape{segments, width})}, DType::f32)[0];
      const Tensor winner = make_inputs({ids(Shape{segments, width}, 60)}, DType::f32)[0];
      const Tensor out = segment_spread(SpreadOp::winner, plan, grad, {.winner = winner});
      for (int64_t e = 0; e < rows; ++e)
        for (int64_t j = 0; j < width; ++j) {
          const int64_t s = segment[e] * width + j;
          ASSERT_EQ(out.data<float>()[e * width + j],
                    winner.data<int32_t>()[s] == place[size_t(e)] ? grad.data<float>()[s] : 0.0f)
              << name(isa) << " " << e << " " << j;
        }
    }
}

/// A product over a hub is cut into pieces that threads share: the product of the others, whichever piece they are in, with
/// none, one and two zeros.
TEST(SegmentSpread, ProductOfAHubInPieces) {
  const Restore restore;
  const int64_t rows = 3 * 4096 + 100, width = 19;
  std::vector<int64_t> index(size_t(rows), 1);
  for (const int64_t e : {0, 5000, 12345}) index[size_t(e)] = 0;
  const SegmentPlan plan = SegmentPlan::from_index(Tensor::from(index, Shape{rows}), 3);
  std::vector<double> x(size_t(rows * width));
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1 + 1e-3 * (double(i * 2654435761u % 1000) / 500 - 1);
  x[size_t(4097 * width + 1)] = 0;                              // column 1: one zero
  x[size_t(17 * width + 2)] = x[size_t(9000 * width + 2)] = 0;  // column 2: two
  std::vector<double> grad(size_t(3 * width), 2), initial(size_t(3 * width), 0.5);
  const Tensor tx = Tensor::from(x, Shape{rows, width}), tg = Tensor::from(grad, Shape{3, width}),
               ti = Tensor::from(initial, Shape{3, width});
  std::vector<double> expected(x.size());
  for (const int64_t segment : {0, 1})
    for (int64_t j = 0; j < width; ++j) {
      long double product = 1;  // of what is not zero
      std::vector<int64_t> zeros;
      for (int64_t e = 0; e < rows; ++e) {
        const double value = x[size_t(e * width + j)];
        if (index[size_t(e)] != segment) continue;
        if (value == 0)
          zeros.push_back(e);
        else
          product *= value;
      }
      for (int64_t e = 0; e < rows; ++e) {
        const double value = x[size_t(e * width + j)];
        if (index[size_t(e)] != segment) continue;
        const bool others = zeros.size() > (value == 0 ? 1u : 0u);
        expected[size_t(e * width + j)] = others ? 0 : double(value == 0 ? product : product / value);
      }
    }
  for (const Isa isa : isas()) {
    set_isa(isa);
    Tensor first;
    for (const int threads : {1, 2, 3}) {
      set_threads(threads);
      const Tensor out = segment_spread(SpreadOp::product, plan, tg, {.x = tx, .initial = ti});
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(out.data<double>()[i], expected[i], 4 * double(rows) * 0x1p-53 * std::fabs(expected[i]))
            << name(isa) << " row " << i / size_t(width) << " column " << i % size_t(width);
      if (!first.defined()) first = out;
      EXPECT_TRUE(same_bits(out, first)) << name(isa) << " " << threads;
    }
  }
}

TEST(SegmentSpread, Errors) {
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 1}, Shape{2}));
  verify_errors({{[&] { segment_spread(SpreadOp::winner, plan, ones(Shape{1}, DType::i32), {}); },
                  "Unsupported: segment_spread: dtype i32 is not supported, use f32, f64, bf16 or f16"}});
}

}  // namespace
}  // namespace tessera::test
