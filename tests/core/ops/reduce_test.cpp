#include "tessera/core/ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

/// Around the sixteen running sums and the blocks of 16384.
std::vector<Shape> shapes() { return {{}, {0}, {3, 0}, {1}, {15}, {17}, {4, 33}, {16384}, {16385}, {3, 30000}}; }

Array total(const Arrays& in) {
  Array out{Shape{}};
  for (int64_t i = 0; i < in[0].numel(); ++i) out[0] += in[0][i];
  return out;
}

/// Additions in a row: f32 adds in double, f64 has 16 running sums over a block, then trees.
double additions(DType dtype, int64_t count) {
  return dtype == DType::f32 ? 1 : double(std::min<int64_t>(count, 16384)) / 16 + 20;
}

TEST(Reduce, Sum) {
  for (const Shape& shape : shapes())
    for (const DType dtype : {DType::f32, DType::f64})
      verify({.name = "sum " + to_text(shape),
              .inputs = {real(shape)},
              .call = [](const Tensors& in) { return sum(in[0]); },
              .reference = total,
              .k = additions(dtype, shape.numel()) / 4,
              .grad_k = 0,
              .dtypes = {dtype}});
}

TEST(Reduce, Mean) {
  for (const Shape& shape : shapes()) {
    if (shape.numel() == 0) continue;
    for (const DType dtype : {DType::f32, DType::f64})
      verify({.name = "mean " + to_text(shape),
              .inputs = {real(shape)},
              .call = [](const Tensors& in) { return mean(in[0]); },
              .reference =
                  [](const Arrays& in) {
                    Array out = total(in);
                    out[0] /= double(in[0].numel());
                    return out;
                  },
              .k = additions(dtype, shape.numel()) / 4 + 0.5,
              .grad_k = 0.5,
              .dtypes = {dtype}});
  }
}

// One float sum after the other stops at 2^24; a sum over blocks in double does not.
TEST(Reduce, LongSumsOfOnesAreExact) {
  EXPECT_EQ(sum(ones({20'000'000})).item(), 20'000'000);
  EXPECT_EQ(mean(full({10'000'000}, 0.1)).item(), double(0.1f));
}

TEST(Reduce, SumRows) {
  std::vector<Shape> list = {{0, 3}, {5, 0}, {0, 0}, {1, 1}, {1023, 2}, {1024, 3}, {1025, 2}, {5000, 17}};
  for (const int64_t width : kWidths) list.push_back({7, width});
  list.push_back({300, 129});
  for (const Shape& shape : list)
    for (const DType dtype : {DType::f32, DType::f64})
      verify({.name = "sum_rows " + to_text(shape),
              .inputs = {real(shape)},
              .call = [](const Tensors& in) { return sum_rows(in[0]); },
              .reference =
                  [](const Arrays& in) {
                    Array out(Shape{in[0].dim(1)});
                    for (int64_t i = 0; i < in[0].dim(0); ++i)
                      for (int64_t j = 0; j < in[0].dim(1); ++j) out[j] += in[0](i, j);
                    return out;
                  },
              .k = dtype == DType::f32 ? 0.5 : double(std::min<int64_t>(shape[0], 1024) + 10) / 4,
              .grad_k = 0,
              .dtypes = {dtype}});
}

TEST(Reduce, SpecialValues) {
  const double inf = INFINITY;
  for (const std::vector<double>& values :
       {std::vector<double>{1, inf, 2}, {inf, -inf, 0}, {NAN, 1, 2}, {3e38, 3e38, -3e38}})
    verify({.name = "sum of special values",
            .inputs = {given({3}, values).no_grad()},
            .call = [](const Tensors& in) { return sum(in[0]); },
            .reference = total});
}

TEST(Reduce, ArgmaxRows) {
  std::vector<Shape> list = {{0, 3}, {0, 0}, {1, 1}, {3000, 20}};
  for (const int64_t width : kWidths) list.push_back({9, width});
  for (const Shape& shape : list)
    verify({.name = "argmax_rows " + to_text(shape),
            .inputs = {real(shape, 0, 8).no_grad()},
            .call = [](const Tensors& in) { return argmax_rows(in[0]); },
            .reference =
                [](const Arrays& in) {
                  Array out(Shape{in[0].dim(0)});
                  for (int64_t i = 0; i < out.numel(); ++i)
                    for (int64_t j = 1; j < in[0].dim(1); ++j)
                      if (in[0](i, j) > in[0](i, out.id(i))) out[i] = double(j);
                  return out;
                }});
}

TEST(Reduce, ArgmaxRowsTiesAndNan) {
  const double inf = INFINITY;
  const auto argmax = [](std::vector<double> row) {
    const Tensor x = Tensor::from(row, {1, int64_t(row.size())});
    const int32_t at = argmax_rows(x).data<int32_t>()[0];
    EXPECT_EQ(argmax_rows(cast(x, DType::f32)).data<int32_t>()[0], at);
    return at;
  };
  EXPECT_EQ(argmax({3, 3, 1}), 0);
  EXPECT_EQ(argmax({1, 3, 3}), 1);
  EXPECT_EQ(argmax({0, -0.0}), 0);
  EXPECT_EQ(argmax({-3, -1, -2}), 1);
  EXPECT_EQ(argmax({-inf, -inf}), 0);
  EXPECT_EQ(argmax({1, inf, inf}), 1);
  EXPECT_EQ(argmax({1, NAN, inf}), 1);
  EXPECT_EQ(argmax({NAN, 5, NAN}), 0);
  EXPECT_EQ(argmax({inf, 1, NAN}), 2);
}

TEST(Reduce, ArgmaxHasNoGradient) {
  Tensor x = ones({2, 2});
  x.set_requires_grad();
  EXPECT_FALSE(argmax_rows(x).requires_grad());
}

TEST(Reduce, Errors) {
  const Tensor integers = ones({2, 2}, DType::i64);
  verify_errors({
      {[] {
         mean(Tensor::empty({3, 0}));
       },
       "InvalidArgument: mean: x has shape [3, 0], the mean of no elements is undefined"},
      {[&] { sum(integers); }, "Unsupported: sum: dtype i64 is not supported, use f32 or f64"},
      {[&] { mean(integers); }, "Unsupported: mean: dtype i64 is not supported, use f32 or f64"},
      {[&] { sum_rows(integers); }, "Unsupported: sum_rows: dtype i64 is not supported, use f32 or f64"},
      {[&] { argmax_rows(integers); }, "Unsupported: argmax_rows: dtype i64 is not supported, use f32 or f64"},
      {[] { sum_rows(ones({3})); }, "InvalidArgument: sum_rows: x has shape [3] but needs two dimensions"},
      {[] {
         argmax_rows(ones({3, 1, 1}));
       },
       "InvalidArgument: argmax_rows: x has shape [3, 1, 1] but needs two dimensions"},
      {[] {
         argmax_rows(ones({3, 0}));
       },
       "InvalidArgument: argmax_rows: x has shape [3, 0], the largest of no elements is undefined"},
      {[] { sum(Tensor()); }, "InvalidArgument: tensor: an undefined tensor was used"},
  });
}

}  // namespace
}  // namespace tessera::test
