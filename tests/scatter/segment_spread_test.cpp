#include "tessera/scatter/segment_spread.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
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

TEST(SegmentSpread, Errors) {
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 1}, Shape{2}));
  verify_errors({{[&] { segment_spread(SpreadOp::winner, plan, ones(Shape{1}, DType::i32), {}); },
                  "Unsupported: segment_spread: dtype i32 is not supported, use f32, f64, bf16 or f16"}});
}

}  // namespace
}  // namespace tessera::test
