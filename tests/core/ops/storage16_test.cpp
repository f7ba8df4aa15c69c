#include "tessera/core/ops/storage16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/conv2d.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/lstm.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/norm.h"
#include "tessera/core/ops/pool2d.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"
#include "tessera/core/ops/unary.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

const std::vector<DType> kStorage = {DType::bf16, DType::f16};

/// The reference is the element-wise `f` of all inputs, equal in shape.
void verify_each(const std::string& name, const std::vector<Input>& inputs, std::function<Tensor(const Tensors&)> call,
                 std::function<Real(const std::vector<Real>&)> f) {
  verify({.name = name,
          .inputs = inputs,
          .call = std::move(call),
          .reference =
              [f = std::move(f)](const Arrays& in) {
                Array out(in[0].shape);
                for (int64_t i = 0; i < out.numel(); ++i) {
                  std::vector<Real> x;
                  for (const Array& a : in) x.push_back(a[i % a.numel()]);
                  out[i] = f(x);
                }
                return out;
              },
          .dtypes = kStorage});
}

TEST(Storage16, Elementwise) {
  using X = const std::vector<Real>&;
  const Input x = real({4, 17}), y = real({4, 17}), row = real({17}), positive = real({4, 17}, 0.5, 2);
  verify_each(
      "add", {x, y}, [](const Tensors& in) { return add(in[0], in[1]); }, [](X v) { return v[0] + v[1]; });
  verify_each(
      "sub row", {x, row}, [](const Tensors& in) { return sub(in[0], in[1]); }, [](X v) { return v[0] - v[1]; });
  verify_each(
      "mul row", {x, row}, [](const Tensors& in) { return mul(in[0], in[1]); }, [](X v) { return v[0] * v[1]; });
  verify_each(
      "div", {x, positive}, [](const Tensors& in) { return div(in[0], in[1]); }, [](X v) { return v[0] / v[1]; });
  verify_each(
      "maximum", {apart({4, 8}), apart({4, 8}, -0.9, 0.9)}, [](const Tensors& in) { return maximum(in[0], in[1]); },
      [](X v) { return v[0] >= v[1] ? v[0] : v[1]; });
  verify_each(
      "add_bias", {x, row}, [](const Tensors& in) { return add_bias(in[0], in[1]); }, [](X v) { return v[0] + v[1]; });
  verify_each(
      "relu", {apart({4, 17})}, [](const Tensors& in) { return relu(in[0]); },
      [](X v) { return v[0] > Real(0) ? v[0] : Real(0); });
  verify_each(
      "exp", {x}, [](const Tensors& in) { return exp(in[0]); }, [](X v) { return exp(v[0]); });
  verify_each(
      "log", {positive}, [](const Tensors& in) { return log(in[0]); }, [](X v) { return log(v[0]); });
  verify_each(
      "tanh", {x}, [](const Tensors& in) { return tanh(in[0]); }, [](X v) { return tanh(v[0]); });
  verify_each(
      "sigmoid", {x}, [](const Tensors& in) { return sigmoid(in[0]); },
      [](X v) { return Real(1) / (Real(1) + exp(-v[0])); });
  verify_each(
      "scale, shift", {x}, [](const Tensors& in) { return shift(scale(in[0], 2), 0.5); },
      [](X v) { return v[0] * Real(2) + Real(0.5); });
}

// A chain rounds after each op, a fused one once.
TEST(Storage16, RoundsOncePerOp) {
  const Tensor a = cast(Tensor::from<float>({1}, {1}), DType::bf16),
               tiny = cast(Tensor::from<float>({0x1p-8f}, {1}), DType::bf16);
  EXPECT_EQ(cast(add(add(a, tiny), tiny), DType::f32).item(), 1);  // 1 + 2^-8 is half a spacing: to even, each time
  EXPECT_EQ(cast(sum(concat({a, tiny, tiny})), DType::f32).item(), 1 + 0x1p-7);
}

TEST(Storage16, ComparisonsAndWhere) {
  for (const DType dtype : kStorage) {
    const Tensor a = cast(Tensor::from<float>({1, 2, NAN}, {3}), dtype),
                 b = cast(Tensor::from<float>({2, 2, 0}, {3}), dtype);
    EXPECT_EQ(less(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 0}));
    EXPECT_EQ(equal(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1, 0}));
    EXPECT_EQ(cast(where(less(a, b), a, b), DType::f32).to_vector<float>(), (std::vector<float>{1, 2, 0}));
    Tensor sum = a;
    add_in_place(sum, b);
    EXPECT_EQ(cast(a, DType::f32).data<float>()[0], 3);
  }
}

TEST(Storage16, Reductions) {
  const auto lines = [](const Array& x, auto f) {
    Array out(Shape{x.dim(0)});
    for (int64_t i = 0; i < x.dim(0); ++i) {
      std::vector<Real> line(x.values.begin() + i * x.dim(1), x.values.begin() + (i + 1) * x.dim(1));
      out[i] = f(line);
    }
    return out;
  };
  const auto total = [](const std::vector<Real>& line) {
    Real sum(0);
    for (const Real& v : line) sum += v;
    return sum;
  };
  verify({.name = "sum of lines",
          .inputs = {real({3, 40})},
          .call = [](const Tensors& in) { return sum(in[0], 1); },
          .reference = [=](const Arrays& in) { return lines(in[0], total); },
          .dtypes = kStorage});
  verify({.name = "mean of lines",
          .inputs = {real({3, 40})},
          .call = [](const Tensors& in) { return mean(in[0], 1); },
          .reference =
              [=](const Arrays& in) { return lines(in[0], [=](auto& l) { return total(l) / Real(double(l.size())); }); },
          .dtypes = kStorage});
  verify({.name = "max of lines",
          .inputs = {apart({3, 40})},
          .call = [](const Tensors& in) { return max(in[0], 1).values; },
          .reference =
              [=](const Arrays& in) {
                return lines(in[0], [](auto& l) {
                  Real best = l[0];
                  for (const Real& v : l) best = v > best ? v : best;
                  return best;
                });
              },
          .k = 0,
          .dtypes = kStorage});
  verify({.name = "norm of lines",
          .inputs = {real({3, 40})},
          .call = [](const Tensors& in) { return norm(in[0], Norm::l2, 1); },
          .reference =
              [=](const Arrays& in) {
                return lines(in[0], [](auto& l) {
                  Real sum(0);
                  for (const Real& v : l) sum += v * v;
                  return sqrt(sum);
                });
              },
          .dtypes = kStorage});
  const Tensor x = cast(Tensor::from<float>({1, 5, 3}, {1, 3}), DType::bf16);
  EXPECT_EQ(argmax(x, 1).item(), 1);
  EXPECT_EQ(argmax_rows(x).item(), 1);
  EXPECT_EQ(cast(sum_rows(x), DType::f32).to_vector<float>(), (std::vector<float>{1, 5, 3}));
}

// H08: a half sum would stall at 256, a half count overflow beyond 65504.
TEST(Storage16, MeanOfManyHalves) {
  const Tensor tenth = cast(full({1}, 0.1), DType::f16);
  const double exact = cast(tenth, DType::f64).item();
  for (const int64_t count : {10'000, 70'000}) {
    const Tensor x = cast(full({count}, 0.1), DType::f16);
    EXPECT_EQ(cast(mean(x), DType::f64).item(), exact);
    EXPECT_EQ(cast(mean(reshape(x, {1, count}), 1), DType::f64).item(), exact);
  }
}

TEST(Storage16, Softmax) {
  for (const bool logarithm : {false, true})
    verify({.name = logarithm ? "log_softmax" : "softmax",
            .inputs = {real({3, 19})},
            .call = [=](const Tensors& in) { return logarithm ? log_softmax(in[0]) : softmax(in[0]); },
            .reference =
                [=](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < 3; ++i) {
                    Real sum(0);
                    for (int64_t j = 0; j < 19; ++j) sum += exp(in[0](i, j));
                    for (int64_t j = 0; j < 19; ++j) out(i, j) = logarithm ? in[0](i, j) - log(sum) : exp(in[0](i, j)) / sum;
                  }
                  return out;
                },
            .dtypes = kStorage});
}

// H60 in 16 bits: what lies behind the rows is not read.
TEST(Storage16, Matmul) {
  verify({.name = "matmul with bias",
          .inputs = {real({5, 36}), real({36, 7}), real({7})},
          .call = [](const Tensors& in) { return matmul(in[0], in[1], {.bias = in[2]}); },
          .reference =
              [](const Arrays& in) {
                Array out(Shape{5, 7});
                for (int64_t i = 0; i < 5; ++i)
                  for (int64_t j = 0; j < 7; ++j) {
                    out(i, j) = in[2][j];
                    for (int64_t k = 0; k < 36; ++k) out(i, j) += in[0](i, k) * in[1](k, j);
                  }
                return out;
              },
          .dtypes = kStorage});
  verify({.name = "batched_matmul",
          .inputs = {real({2, 3, 4}), real({2, 5, 4})},
          .call = [](const Tensors& in) { return batched_matmul(in[0], in[1], {.transpose_b = true}); },
          .reference =
              [](const Arrays& in) {
                Array out(Shape{2, 3, 5});
                for (int64_t b = 0; b < 2; ++b)
                  for (int64_t i = 0; i < 3; ++i)
                    for (int64_t j = 0; j < 5; ++j)
                      for (int64_t k = 0; k < 4; ++k) out(b, i, j) += in[0](b, i, k) * in[1](b, j, k);
                return out;
              },
          .dtypes = kStorage});
  for (const DType dtype : kStorage)
    for (const int64_t n : {1, 108}) {
      Tensor buffer = cast(full({64, 36}, dtype == DType::f16 ? 60000 : 1e9), dtype);
      const Tensor used = cast(ones({20, 36}), dtype);
      std::copy_n(static_cast<const char*>(used.raw()), 20 * 36 * 2, static_cast<char*>(buffer.mutable_raw()));
      const Tensor product = cast(matmul(buffer.view_rows(0, 20), cast(ones({36, n}), dtype)), DType::f32);
      for (const float v : product.span<float>()) ASSERT_EQ(v, 36);
    }
}

/// The same as computing in f32 from the same 16-bit inputs and rounding the result, gradients included.
void verify_rounding(const std::string& name, const std::vector<Shape>& shapes,
                     const std::function<Tensor(const Tensors&)>& call) {
  for (const DType dtype : kStorage) {
    std::vector<Input> inputs;
    for (const Shape& shape : shapes) inputs.push_back(apart(shape));
    Tensors narrow = make_inputs(inputs, dtype), wide;
    for (Tensor& x : narrow) {
      x.set_requires_grad();
      wide.push_back(cast(x.detach(), DType::f32));
      wide.back().set_requires_grad();
    }
    const Tensor out = call(narrow), expected = call(wide);
    ASSERT_EQ(out.dtype(), dtype) << name;
    EXPECT_TRUE(same_bits(out.detach(), cast(expected.detach(), dtype))) << name;
    const Tensor seed = random_seed(out.shape(), dtype);
    backward(out, seed);
    backward(expected, cast(seed, DType::f32));
    for (size_t i = 0; i < narrow.size(); ++i)
      EXPECT_TRUE(same_bits(narrow[i].grad(), cast(wide[i].grad(), dtype))) << name << i;
  }
}

TEST(Storage16, NormsConvolutionsPoolingAndLstm) {
  verify_rounding("layer_norm", {{3, 9}, {9}, {9}}, [](const Tensors& in) { return layer_norm(in[0], in[1], in[2]); });
  verify_rounding("batch_norm", {{4, 3, 5}, {3}, {3}}, [](const Tensors& in) {
    Tensor mean = zeros({3}), var = ones({3});
    return batch_norm(in[0], in[1], in[2], mean, var);
  });
  verify_rounding("conv2d", {{2, 3, 5, 5}, {4, 3, 3, 3}, {4}}, [](const Tensors& in) {
    return conv2d(in[0], in[1], {.padding = 1, .bias = in[2], .activation = Activation::relu});
  });
  verify_rounding("max_pool2d", {{2, 3, 5, 5}}, [](const Tensors& in) { return max_pool2d(in[0], 2); });
  verify_rounding("avg_pool2d", {{2, 3, 5, 5}}, [](const Tensors& in) { return avg_pool2d(in[0], 3, {.padding = 1}); });
  verify_rounding("adaptive_avg_pool2d", {{2, 3, 5, 5}}, [](const Tensors& in) { return adaptive_avg_pool2d(in[0]); });
  verify_rounding("lstm", {{2, 3, 4}, {8, 4}, {8, 2}, {8}, {8}}, [](const Tensors& in) {
    return lstm(in[0], {in[1], in[2], in[3], in[4]});
  });
  verify_rounding("var", {{3, 9}}, [](const Tensors& in) { return var(in[0], 1); });
  verify_rounding("gelu", {{3, 9}}, [](const Tensors& in) { return gelu(in[0]); });
}

TEST(Storage16, Errors) {
  const Tensor h = zeros({2, 2}, DType::f16), b = zeros({2, 2}, DType::bf16), x = zeros({2, 2});
  verify_errors({
      {[&] { add(h, b); }, "InvalidArgument: add: a is f16 but b is bf16"},
      {[&] { add(x, h); }, "InvalidArgument: add: a is f32 but b is f16"},
      {[&] { matmul(h, x); }, "InvalidArgument: matmul: a is f16 but b is f32"},
      {[&] { matmul(h, h, {.bias = zeros({3})}); }, "InvalidArgument: matmul: bias is f32 [3] but needs to be f32 [2]"},
  });
}

}  // namespace
}  // namespace tessera::test
