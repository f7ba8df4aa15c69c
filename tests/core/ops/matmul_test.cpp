#include "tessera/core/ops/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

enum class Check { values, bits };

/// op(a) op(b) with M, K, N, in all four layouts; `bits`: determinism alone, for what is too large for a reference.
void verify_matmul(int64_t m, int64_t k, int64_t n, Check what = Check::values) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
      Case c{.name = "matmul " + to_text(Shape{m, k, n}) + (ta ? " a transposed" : "") + (tb ? " b transposed" : ""),
             .inputs = {real(a).saved(), real(b).saved()},
             .call = [=](const Tensors& in) { return matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb}); },
             .reference = nullptr,
             .k = double(k) / 4 + 1,
             .grad_k = double(std::max(m, n)) / 4 + 1,
             .smooth = what == Check::values};
      if (what == Check::values)
        c.reference = [=](const Arrays& in) {
          Array out(Shape{m, n});
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              for (int64_t l = 0; l < k; ++l)
                out(i, j) += (ta ? in[0](l, i) : in[0](i, l)) * (tb ? in[1](j, l) : in[1](l, j));
          return out;
        };
      verify(c);
    }
}

TEST(Matmul, SmallShapes) {
  for (const int64_t width : kWidths) {
    verify_matmul(5, 7, width);
    verify_matmul(width, 4, 3);
    verify_matmul(2, width, 6);
  }
  verify_matmul(1, 1, 1);
  verify_matmul(13, 130, 33);  // more than one block of K, rows and columns that fill no register tile
}

TEST(Matmul, EmptyShapes) {
  using Sizes = std::array<int64_t, 3>;
  for (const auto& [m, k, n] : {Sizes{0, 3, 2}, {3, 0, 2}, {2, 3, 0}, {0, 0, 0}, {0, 0, 2}, {1, 0, 1}})
    verify_matmul(m, k, n);
}

// Tiles of 256 rows, and K cut in pieces that are added in a tree.
TEST(Matmul, TilesAndCuts) {
  verify_matmul(255, 3, 2);
  verify_matmul(256, 3, 2);
  verify_matmul(257, 3, 2);
  verify_matmul(3, 2048, 2);
  verify_matmul(3, 2049, 2);
  verify_matmul(2, 9001, 1);
  verify_matmul(257, 2049, 1, Check::bits);
}

TEST(Matmul, LargeProductsOnSeveralThreads) {
  verify_matmul(700, 200, 40, Check::bits);
  verify_matmul(16, 9'000, 40, Check::bits);
}

TEST(Matmul, OfItself) {
  verify({.name = "x^T x",
          .inputs = {real({9, 4}).saved()},
          .call = [](const Tensors& in) { return matmul(in[0], in[0], {.transpose_a = true}); },
          .reference =
              [](const Arrays& in) {
                Array out(Shape{4, 4});
                for (int64_t i = 0; i < 4; ++i)
                  for (int64_t j = 0; j < 4; ++j)
                    for (int64_t l = 0; l < 9; ++l) out(i, j) += in[0](l, i) * in[0](l, j);
                return out;
              },
          .k = 4,
          .grad_k = 4});
}

// H61: what the output memory held must not matter, and zero times NaN is NaN.
TEST(Matmul, ZeroTimesNan) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto tensor = [&](std::vector<double> v, const Shape& s) { return cast(Tensor::from(v, s), dtype); };
    const auto product = [&](const Tensor& a, const Tensor& b) {
      { Tensor stale = full({a.dim(0), b.dim(1)}, NAN, dtype); }  // its block is handed out again
      return cast(matmul(a, b), DType::f64).to_vector<double>();
    };
    EXPECT_EQ(product(tensor({1, 2}, {1, 2}), tensor({3, 4}, {2, 1})), (std::vector<double>{11}));
    EXPECT_EQ(product(zeros({2, 0}, dtype), zeros({0, 3}, dtype)), std::vector<double>(6));
    const std::vector<double> mixed = product(tensor({0, 1, 1, 0}, {2, 2}), tensor({NAN, 1, 5, INFINITY}, {2, 2}));
    EXPECT_TRUE(std::isnan(mixed[0]));
    EXPECT_EQ(mixed[1], INFINITY);
    EXPECT_TRUE(std::isnan(mixed[2]));
    EXPECT_TRUE(std::isnan(mixed[3]));  // 1 * 1 + 0 * inf
  }
}

// H60: a view of the first rows of a larger array; what lies behind it must not be read.
TEST(Matmul, RowsOfALargerArray) {
  for (const int64_t n : {1, 3, 108}) {
    Tensor buffer = full({64, 36}, 1e9);
    float* values = buffer.mutable_data<float>();
    std::fill(values, values + 20 * 36, 1.0f);
    values[20 * 36] = NAN;
    const Tensor a = buffer.view_rows(0, 20);
    for (const float x : matmul(a, ones({36, n})).span<float>()) ASSERT_EQ(x, 36);
    for (const float x : matmul(ones({n, 20}), a).span<float>()) ASSERT_EQ(x, 20);
    for (const float x : matmul(ones({n, 36}), a, {.transpose_b = true}).span<float>()) ASSERT_EQ(x, 36);
  }
}

TEST(Matmul, Transpose) {
  for (const Shape& shape :
       {Shape{0, 3}, Shape{3, 0}, Shape{1, 1}, Shape{1, 9}, Shape{16, 16}, Shape{17, 33}, Shape{500, 131}})
    verify({.name = "transpose " + to_text(shape),
            .inputs = {real(shape)},
            .call = [](const Tensors& in) { return transpose(in[0]); },
            .reference =
                [](const Arrays& in) {
                  Array out(Shape{in[0].dim(1), in[0].dim(0)});
                  for (int64_t i = 0; i < in[0].dim(0); ++i)
                    for (int64_t j = 0; j < in[0].dim(1); ++j) out(j, i) = in[0](i, j);
                  return out;
                },
            .k = 0,
            .grad_k = 0});
}

TEST(Matmul, TransposeOfEveryDtype) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    const Tensor y = transpose(cast(x, dtype));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(cast(y, DType::f64).to_vector<double>(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  }
}

TEST(Matmul, Errors) {
  const Tensor x = ones({2, 3}), d = ones({3, 2}, DType::f64), i = ones({3, 3}, DType::i32), h = ones({3, 3}, DType::bf16);
  verify_errors({
      {[&] { matmul(x, x); }, "InvalidArgument: matmul: a has shape [2, 3] and b [2, 3], the inner sizes 3 and 2 differ"},
      {[&] {
         matmul(x, ones({3, 4}), {.transpose_a = true});
       },
       "InvalidArgument: matmul: a has shape [2, 3] transposed and b [3, 4], the inner sizes 2 and 3 differ"},
      {[&] {
         matmul(x, ones({3, 4}), {.transpose_b = true});
       },
       "InvalidArgument: matmul: a has shape [2, 3] and b [3, 4] transposed, the inner sizes 3 and 4 differ"},
      {[&] { matmul(x, ones({3})); }, "InvalidArgument: matmul: a has shape [2, 3] and b [3] but both need two dimensions"},
      {[&] { matmul(x, d); }, "InvalidArgument: matmul: a is f32 but b is f64"},
      {[&] { matmul(i, i); }, "Unsupported: matmul: dtype i32 is not supported, use f32 or f64"},
      {[&] { matmul(h, x); }, "InvalidArgument: matmul: a is bf16 but b is f32"},
      {[&] { matmul(Tensor(), x); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[&] { transpose(ones({3})); }, "InvalidArgument: transpose: x has shape [3] but needs two dimensions"},
  });
}

}  // namespace
}  // namespace tessera::test
