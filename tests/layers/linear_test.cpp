#include "tessera/layers/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/layers/init.h"
#include "tessera/tests/support/cases.h"

namespace tessera {
namespace {

using namespace test;

Array linear_reference(const Array& x, const Array& weight, const Array* bias) {
  Array out(Shape{x.dim(0), weight.dim(0)});
  for (int64_t i = 0; i < x.dim(0); ++i)
    for (int64_t j = 0; j < weight.dim(0); ++j) {
      Real sum = bias != nullptr ? (*bias)[j] : Real(0);
      for (int64_t k = 0; k < x.dim(1); ++k) sum += x(i, k) * weight(j, k);
      out(i, j) = sum;
    }
  return out;
}

TEST(Linear, Dense) {
  for (const int64_t rows : {0, 1, 5})
    for (const bool bias : {false, true}) {
      std::vector<Input> inputs = {real({rows, 7}).saved(), real({3, 7}).saved()};
      if (bias) inputs.push_back(real({3}));
      verify({.name = "linear of " + std::to_string(rows) + " rows",
              .inputs = inputs,
              .call =
                  [=](const Tensors& in) {
                    Linear linear;
                    linear.weight = in[1];
                    if (bias) linear.bias = in[2];
                    return linear(in[0]);
                  },
              .reference = [=](const Arrays& in) { return linear_reference(in[0], in[1], bias ? &in[2] : nullptr); },
              .k = 9,
              .grad_k = 9});
    }
}

/// Rows of stored entries, an empty one, and two entries in one place (which add up).
const std::vector<int64_t> kRowptr = {0, 2, 2, 5, 6};
const std::vector<int64_t> kCol = {1, 4, 0, 0, 2, 4};

TEST(Linear, Sparse) {
  verify({.name = "linear of sparse rows",
          .inputs = {real({6}).saved(), real({3, 5}), real({3})},
          .call =
              [](const Tensors& in) {
                Linear linear;
                linear.weight = in[1];
                linear.bias = in[2];
                const Graph pattern = Graph::from_csr(Tensor::from(kRowptr, {5}), Tensor::from(kCol, {6}), 5);
                return linear(SparseMatrix{pattern, in[0]});
              },
          .reference =
              [](const Arrays& in) {
                Array x(Shape{4, 5});
                for (int64_t i = 0; i < 4; ++i)
                  for (int64_t e = kRowptr[size_t(i)]; e < kRowptr[size_t(i) + 1]; ++e) x(i, kCol[size_t(e)]) += in[0][e];
                return linear_reference(x, in[1], &in[2]);
              },
          .k = 9,
          .grad_k = 9});
}

TEST(Linear, InitialValues) {
  Generator generator(3);
  const Linear plain(16, 400, generator), glorot_init(16, 400, generator, {.bias = false, .glorot = true});
  EXPECT_EQ(plain.weight.shape(), (Shape{400, 16}));
  EXPECT_EQ(plain.bias.shape(), (Shape{400}));
  EXPECT_FALSE(glorot_init.bias.defined());
  const auto largest = [](const Tensor& t) {
    double out = 0;
    for (const float v : t.span<float>()) out = std::max(out, std::fabs(double(v)));
    return out;
  };
  const double fan_in = 1 / std::sqrt(16.0), glorot_bound = std::sqrt(6.0 / 416);
  EXPECT_LE(largest(plain.weight), fan_in);
  EXPECT_GT(largest(plain.weight), 0.99 * fan_in);
  EXPECT_LE(largest(plain.bias), fan_in);
  EXPECT_LE(largest(glorot_init.weight), glorot_bound);
  EXPECT_GT(largest(glorot_init.weight), 0.99 * glorot_bound);
  EXPECT_TRUE(plain.weight.requires_grad());
  Generator again(3);
  EXPECT_TRUE(same_bits(plain.weight, Linear(16, 400, again).weight));
}

TEST(Linear, Errors) {
  Generator generator(0);
  const Linear linear(4, 2, generator);
  const Graph pattern = Graph::from_csr(Tensor::from<int64_t>({0, 0}, {2}), Tensor::from<int32_t>({}, {0}), 3);
  verify_errors({
      {[&] { linear(zeros({3, 5})); }, "InvalidArgument: linear: x has shape [3, 5] but needs to be [N, 4]"},
      {[&] { linear(zeros({4})); }, "InvalidArgument: linear: x has shape [4] but needs to be [N, 4]"},
      {[&] { linear(SparseMatrix{pattern, zeros({0})}); }, "InvalidArgument: linear: x has 3 columns but needs 4"},
      {[&] { glorot({3}, generator); }, "InvalidArgument: glorot: shape [3] needs two dimensions or more"},
  });
}

}  // namespace
}  // namespace tessera
