// More elements than an int32 counts (tests/support/repeated.h), wide rows in every run, and more rows than that in long
// ones. Values are small whole numbers, so that sums are exact, and the last rows, past 2^31, differ from all others.

#include <gtest/gtest.h>

#include <vector>

#include "tessera/core/kernel.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/gather_kernels.h"
#include "tessera/scatter/scatter_reduce.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/repeated.h"

namespace tessera::test {
namespace {

constexpr int64_t kSegment = 1024;  // rows; divides pattern and tail

template <class T, class F>
Tensor filled(int64_t count, const F& f) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(T(f(i)));
  return Tensor::from(values, Shape{count});
}

/// 0 to 6, and 10 to 16 in the tail.
Tensor rows() {
  return repeated(filled<float>(kPattern, [](int64_t i) { return i % 7; }),
                  filled<float>(kTail, [](int64_t i) { return 10 + i % 7; }), kPastInt32, Shape{kPastInt32, 1});
}
int64_t value(int64_t e) {
  const int64_t tail = e - (kPastInt32 - kTail);
  return tail >= 0 ? 10 + tail % 7 : e % kPattern % 7;
}

/// Ids 0 to 15 with the last in the tail only.
Tensor index() {
  return repeated(filled<int32_t>(kPattern, [](int64_t i) { return i % 15; }),
                  filled<int32_t>(kTail, [](int64_t) { return 15; }), kPastInt32, Shape{kPastInt32});
}

constexpr int64_t kWide = int64_t{1} << 18;
constexpr int64_t kWideRows = (int64_t{1} << 13) + 2;  // the last two begin past 2^31

/// Zeros, and 1 + j % 5 and 2 + j % 5 in the last two rows.
Tensor wide_rows() {
  return zeros_before(filled<float>(2 * kWide, [](int64_t i) { return 1 + i / kWide + i % kWide % 5; }),
                      Shape{kWideRows, kWide});
}

TEST(PastInt32, GatherOfWideRows) {
  const Tensor out = gather(wide_rows(), Tensor::from<int64_t>({kWideRows - 1, 0, kWideRows - 2}, Shape{3}));
  for (int64_t j = 0; j < kWide; ++j) {
    ASSERT_EQ(out.data<float>()[j], float(2 + j % 5)) << j;
    ASSERT_EQ(out.data<float>()[kWide + j], 0.0f) << j;
    ASSERT_EQ(out.data<float>()[2 * kWide + j], float(1 + j % 5)) << j;
  }
}

TEST(PastInt32, ReductionsOfWideRows) {
  if (!past_int32_tests()) GTEST_SKIP() << "too much address space for a sanitizer";
  const Tensor x = wide_rows();
  const SegmentPlan plan = SegmentPlan::from_offsets(Tensor::from<int64_t>({0, 5, kWideRows - 2, kWideRows}, Shape{4}));
  const Tensor sum = segment_reduce(x, plan);
  std::vector<int32_t> index(size_t(kWideRows), 0);
  index[size_t(kWideRows) - 1] = index[size_t(kWideRows) - 2] = 1;
  const Tensor pushed = scatter_reduce(x, Tensor::from(index, Shape{kWideRows}), 2);
  for (int64_t j = 0; j < kWide; ++j) {
    ASSERT_EQ(sum.data<float>()[kWide + j], 0.0f) << j;
    ASSERT_EQ(sum.data<float>()[2 * kWide + j], float(3 + 2 * (j % 5))) << j;
    ASSERT_EQ(pushed.data<float>()[j], 0.0f) << j;
    ASSERT_EQ(pushed.data<float>()[kWide + j], float(3 + 2 * (j % 5))) << j;
  }
}

TEST(PastInt32, LongSegmentReduce) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  const int64_t segments = kPastInt32 / kSegment;
  const SegmentPlan plan = SegmentPlan::from_offsets(filled<int64_t>(segments + 1, [](int64_t s) { return s * kSegment; }));
  const Tensor x = rows();
  Tensor winner;
  const Tensor sum = segment_reduce(x, plan), max = segment_reduce(x, plan, Reduce::max, {.winner = &winner});
  std::vector<int64_t> pattern_sum(size_t(kPattern / kSegment));
  for (int64_t e = 0; e < kPattern; ++e) pattern_sum[size_t(e / kSegment)] += value(e);
  for (int64_t s = 0; s < segments - kTail / kSegment; ++s) {
    ASSERT_EQ(sum.data<float>()[s], float(pattern_sum[size_t(s % (kPattern / kSegment))])) << s;
    ASSERT_EQ(max.data<float>()[s], 6.0f) << s;
    ASSERT_LT(winner.data<int64_t>()[s] - s * kSegment, 7) << s;
  }
  for (int64_t s = segments - kTail / kSegment; s < segments; ++s) {
    int64_t expected = 0;
    for (int64_t e = s * kSegment; e < (s + 1) * kSegment; ++e) expected += value(e);
    EXPECT_EQ(sum.data<float>()[s], float(expected));
    EXPECT_EQ(max.data<float>()[s], 16.0f);
    EXPECT_EQ(value(winner.data<int64_t>()[s]), 16);
  }
}

TEST(PastInt32, LongScatterReduce) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  // 2^31 and more terms of up to 16 in 16 slots: doubles in place of floats would take twice the bytes, so the sum of float
  // ones is kept exact by a pattern of zeros but for the tail.
  const Tensor src = repeated(filled<float>(kPattern, [](int64_t) { return 0; }),
                              filled<float>(kTail, [](int64_t i) { return 1 + i % 3; }), kPastInt32, Shape{kPastInt32, 1});
  const Tensor out = scatter_reduce(src, index(), 16);
  float expected = 0;
  for (int64_t i = 0; i < kTail; ++i) expected += float(1 + i % 3);
  for (int64_t s = 0; s < 15; ++s) EXPECT_EQ(out.data<float>()[s], 0.0f);
  EXPECT_EQ(out.data<float>()[15], expected);
}

TEST(PastInt32, LongScatterReduceAlong) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  const int64_t length = kTail, outer = kPastInt32 / kTail;
  const Tensor src = rows(), ids = index();
  Tensor winner;
  const Tensor out = scatter_reduce_along(src.view_as(Shape{outer, length}), ids.view_as(Shape{outer, length}), 1, 16,
                                          Reduce::max, {.winner = &winner});
  for (int64_t o = 0; o < outer; ++o) {
    const bool last = o == outer - 1;
    ASSERT_EQ(out.data<float>()[o * 16 + 15], last ? 16.0f : 0.0f) << o;
    ASSERT_EQ(winner.data<int64_t>()[o * 16 + 15], last ? 6 : -1) << o;
    ASSERT_EQ(out.data<float>()[o * 16 + 14], last ? 0.0f : 6.0f) << o;
  }
}

/// The kernel itself, since its result has no memory either: both the index and what is written repeat.
TEST(PastInt32, LongGather) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  const Tensor ids = index(), x = filled<float>(16, [](int64_t i) { return 100 + i; });
  Tensor out = repeated(filled<float>(kPattern, [](int64_t) { return -1; }),
                        filled<float>(kTail, [](int64_t) { return -1; }), kPastInt32, Shape{kPastInt32});
  bool outside = false;
  run<GatherKernel>(Device::cpu, {.count = kPastInt32,
                                  .x_rows = 16,
                                  .row_bytes = 4,
                                  .x = x.raw(),
                                  .index32 = ids.data<int32_t>(),
                                  .index64 = nullptr,
                                  .out = out.mutable_raw(),
                                  .outside = &outside});
  EXPECT_FALSE(outside);
  for (int64_t e = 0; e < kPattern; ++e) ASSERT_EQ(out.data<float>()[e], float(100 + e % 15)) << e;
  for (int64_t e = kPastInt32 - kTail; e < kPastInt32; ++e) ASSERT_EQ(out.data<float>()[e], 115.0f) << e;
}

/// The first offender stands past 2^31.
TEST(PastInt32, LongIdsAreChecked) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  const Tensor x = filled<float>(15, [](int64_t i) { return i; });
  const std::string at = std::to_string(kPastInt32 - kTail);
  verify_errors({{[&] { scatter_reduce(rows(), index(), 15); },
                  "InvalidArgument: scatter_reduce: index[" + at + "] is 15 but needs to be in [0, 15)"}});
}

}  // namespace
}  // namespace tessera::test
