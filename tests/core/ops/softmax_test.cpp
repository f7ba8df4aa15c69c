#include "tessera/core/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/tolerance.h"

namespace tessera::test {
namespace {

/// Without the shift by the maximum: the references stay within the range of long double.
Real row_sum(const Array& x, int64_t i) {
  Real sum = 0;
  for (int64_t j = 0; j < x.dim(1); ++j) sum += exp(x(i, j));
  return sum;
}

std::vector<Shape> shapes() {
  std::vector<Shape> list = {{0, 3}, {3, 0}, {0, 0}, {1, 1}, {1200, 20}};
  for (const int64_t width : kWidths) list.push_back({4, width});
  return list;
}

TEST(Softmax, Softmax) {
  for (const Shape& shape : shapes())
    verify({.name = "softmax " + to_text(shape),
            .inputs = {real(shape, -3, 3)},
            .call = [](const Tensors& in) { return softmax(in[0]); },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < out.dim(0); ++i) {
                    const Real sum = row_sum(in[0], i);
                    for (int64_t j = 0; j < out.dim(1); ++j) out(i, j) = exp(in[0](i, j)) / sum;
                  }
                  return out;
                },
            .k = double(shape[1]) / 4 + 2,
            .grad_k = double(shape[1]) / 4 + 2,
            .saves_output = true});
}

TEST(Softmax, LogSoftmax) {
  for (const Shape& shape : shapes())
    verify({.name = "log_softmax " + to_text(shape),
            .inputs = {real(shape, -3, 3)},
            .call = [](const Tensors& in) { return log_softmax(in[0]); },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < out.dim(0); ++i) {
                    const Real norm = log(row_sum(in[0], i));
                    for (int64_t j = 0; j < out.dim(1); ++j) out(i, j) = in[0](i, j) - norm;
                  }
                  return out;
                },
            .k = double(shape[1]) / 4 + 2,
            .grad_k = double(shape[1]) / 4 + 2,
            .saves_output = true});
}

std::vector<double> of(Tensor (*op)(const Tensor&, int), std::vector<double> row, DType dtype) {
  const Tensor x = cast(Tensor::from(row, {1, int64_t(row.size())}), dtype);
  return cast(op(x, -1), DType::f64).to_vector<double>();
}

// The shift takes a common offset away exactly, so a large one must cost no digits.
TEST(Softmax, LargeOffsetsCostNothing) {
  for (const double offset : {1e3, -1e3, 1e6})
    for (const DType dtype : {DType::f32, DType::f64}) {
      const double small = 1 / (1 + std::exp(1.0)), eps = unit_roundoff(dtype);
      const std::vector<double> row = {offset, offset + 1};
      EXPECT_NEAR(of(softmax, row, dtype)[0], small, 8 * eps) << offset;
      EXPECT_NEAR(of(softmax, row, dtype)[1], 1 - small, 8 * eps) << offset;
      EXPECT_NEAR(of(log_softmax, row, dtype)[0], std::log(small), 8 * eps) << offset;
      EXPECT_NEAR(of(log_softmax, row, dtype)[1], std::log1p(-small), 8 * eps) << offset;
    }
}

// H09: rows do not see each other, and the shift is each row's own maximum.
TEST(Softmax, RowsAreIndependent) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double inf = INFINITY;
    const Tensor x = cast(Tensor::from<double>({1, -1, -inf, 50, 1000, 1001, NAN, 0}, {4, 2}), dtype);
    const std::vector<double> y = cast(softmax(x), DType::f64).to_vector<double>();
    const std::vector<double> right = {0.88079707797788, 0.11920292202212, 0, 1, 0.26894142136999, 0.73105857863001};
    for (size_t i = 0; i < right.size(); ++i) EXPECT_NEAR(y[i], right[i], dtype == DType::f32 ? 1e-7 : 1e-14) << i;
    EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
    const std::vector<double> l = cast(log_softmax(x), DType::f64).to_vector<double>();
    EXPECT_EQ(l[2], -inf);
    EXPECT_EQ(l[3], 0);
    EXPECT_TRUE(std::isnan(l[6]) && std::isnan(l[7]));
    EXPECT_FALSE(std::isnan(l[5]));
  }
}

TEST(Softmax, NanAnywhereInARow) {
  for (int64_t at = 0; at < 40; ++at) {
    std::vector<float> row(40, 1.0f);
    row[size_t(at)] = NAN;
    const Tensor x = Tensor::from(row, {1, 40});
    for (const float y : softmax(x).span<float>()) ASSERT_TRUE(std::isnan(y)) << at;
    for (const float y : log_softmax(x).span<float>()) ASSERT_TRUE(std::isnan(y)) << at;
  }
}

TEST(Softmax, WideRangesUnderflowToZero) {
  const std::vector<double> y = of(softmax, {0, -200, -1e30, 0}, DType::f32);
  EXPECT_EQ(y, (std::vector<double>{0.5, 0, 0, 0.5}));
  const std::vector<double> l = of(log_softmax, {0, -200, -1e30, -1000}, DType::f32);
  EXPECT_EQ(l, (std::vector<double>{0, -200, double(-1e30f), -1000}));
}

// -inf is a weight of zero beside others; alone it leaves nothing to divide by.
TEST(Softmax, NothingButMinusInfinity) {
  for (const int64_t width : {1, 5, 100}) {
    const Tensor x = full({2, width}, -INFINITY);
    for (const Tensor& y : {softmax(x), log_softmax(x), softmax(x, 0)})
      for (const float v : y.span<float>()) ASSERT_TRUE(std::isnan(v));
  }
}

TEST(Softmax, Errors) {
  verify_errors({
      {[] {
         softmax(ones({1, 1}, DType::i32));
       },
       "Unsupported: softmax: dtype i32 is not supported, use f32 or f64"},
      {[] {
         log_softmax(ones({1, 1}, DType::i64));
       },
       "Unsupported: log_softmax: dtype i64 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
