#include "tessera/core/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/core/version.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Metrics, Accuracy) {
  const Tensor scores = Tensor::from<float>({1, 2, 0, 5, 5, 1, 0, 0, 9, 3, 1, 2}, {4, 3});
  const Tensor labels = Tensor::from<int32_t>({1, 1, 2, 0}, {4});
  EXPECT_EQ(accuracy(scores, labels), 0.75);  // row 1 ties: the lowest class is taken
  EXPECT_EQ(accuracy(cast(scores, DType::f64), labels), 0.75);
  EXPECT_EQ(accuracy(scores, labels, Tensor::from<int32_t>({1}, {1})), 0);
  EXPECT_EQ(accuracy(scores, labels, Tensor::from<int32_t>({0, 0, 1}, {3})), 2.0 / 3);
  Tensor graded = scores.detach();
  graded.set_requires_grad();
  EXPECT_EQ(accuracy(graded, labels), 0.75);
}

TEST(Metrics, LabelsOfOtherRowsAreNotRead) {
  const Tensor labels = Tensor::from<int32_t>({0, -1}, {2});
  EXPECT_EQ(accuracy(ones({2, 2}), labels, Tensor::from<int32_t>({0}, {1})), 1);
}

TEST(Metrics, Errors) {
  const Tensor x = ones({2, 3}), y = Tensor::from<int32_t>({0, 1}, {2});
  const auto rows = [](std::vector<int32_t> r) { return Tensor::from(r, {int64_t(r.size())}); };
  verify_errors({
      {[&] { accuracy(ones({2}), y); }, "InvalidArgument: accuracy: scores have shape [2] but need two dimensions"},
      {[&] { accuracy(x, rows({1})); }, "InvalidArgument: accuracy: labels are i32 [1] but need to be i32 [2]"},
      {[&] { accuracy(x, cast(y, DType::i64)); }, "InvalidArgument: accuracy: labels are i64 [2] but need to be i32 [2]"},
      {[&] { accuracy(x, y, cast(y, DType::f32)); },
       "InvalidArgument: accuracy: rows are f32 [2] but need to be i32 of one dimension"},
      {[&] { accuracy(x, y, rows({})); }, "InvalidArgument: accuracy: no row is chosen, the share of no rows is undefined"},
      {[&] {
         accuracy(x, y, rows({0, 2}));
       },
       "InvalidArgument: accuracy: rows[1] is 2 but needs to be in [0, 2)"},
      {[&] { accuracy(x, y, rows({-1})); }, "InvalidArgument: accuracy: rows[0] is -1 but needs to be in [0, 2)"},
      {[&] {
         accuracy(x, rows({0, 3}));
       },
       "InvalidArgument: accuracy: labels[1] is 3 but needs to be in [0, 3)"},
      {[&] {
         accuracy(ones({2, 3}, DType::i32), y);
       },
       "Unsupported: argmax_rows: dtype i32 is not supported, use f32 or f64"},
  });
}

TEST(Version, IsThreeNumbers) {
  int major = -1, minor = -1, patch = -1;
  EXPECT_EQ(std::sscanf(version(), "%d.%d.%d", &major, &minor, &patch), 3);
  EXPECT_GE(major, 0);
}

}  // namespace
}  // namespace tessera::test
