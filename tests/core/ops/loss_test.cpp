#include "tessera/core/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

Real loss_of_row(const Array& x, int64_t i, int64_t label) {
  Real sum = 0;
  for (int64_t j = 0; j < x.dim(1); ++j) sum += exp(x(i, j));
  return log(sum) - x(i, label);
}

TEST(CrossEntropy, AllRows) {
  for (const int64_t rows : {1, 5, 600})
    for (const int64_t classes : kWidths) {
      if (rows * classes > 20'000) continue;
      verify({.name = "cross_entropy " + to_text(Shape{rows, classes}),
              .inputs = {real({rows, classes}, -3, 3).saved(), ids({rows}, classes).saved()},
              .call = [](const Tensors& in) { return cross_entropy(in[0], in[1]); },
              .reference =
                  [](const Arrays& in) {
                    Array out{Shape{}};
                    for (int64_t i = 0; i < in[0].dim(0); ++i) out[0] += loss_of_row(in[0], i, in[1].id(i));
                    out[0] /= double(in[0].dim(0));
                    return out;
                  },
              // f64 adds the rows' losses one after the other
              .k = double(classes) / 4 + double(rows) / 4 + 2,
              .grad_k = double(classes) / 4 + 3});
    }
}

TEST(CrossEntropy, ChosenRowsMayRepeat) {
  const std::vector<std::vector<int64_t>> choices = {{4}, {0, 2, 5}, {3, 3, 1, 3}, {5, 4, 3, 2, 1, 0}};
  for (const std::vector<int64_t>& rows : choices)
    verify({.name = "cross_entropy of " + std::to_string(rows.size()) + " chosen rows",
            .inputs = {real({6, 4}, -3, 3).saved(), ids({6}, 4).saved(), given_ids({int64_t(rows.size())}, rows).saved()},
            .call = [](const Tensors& in) { return cross_entropy(in[0], in[1], in[2]); },
            .reference =
                [](const Arrays& in) {
                  Array out{Shape{}};
                  for (int64_t c = 0; c < in[2].numel(); ++c)
                    out[0] += loss_of_row(in[0], in[2].id(c), in[1].id(in[2].id(c)));
                  out[0] /= double(in[2].numel());
                  return out;
                },
            .k = 4,
            .grad_k = 4});
}

// Rows that are not chosen are not looked at: neither their logits nor their labels.
TEST(CrossEntropy, OtherRowsDoNotMatter) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = cast(Tensor::from<double>({1, 2, NAN, INFINITY, 0, 3}, {3, 2}), dtype).detach();
    x.set_requires_grad();
    const Tensor labels = Tensor::from<int32_t>({1, -7, 0}, {3}), rows = Tensor::from<int32_t>({2, 0}, {2});
    const Tensor loss = cross_entropy(x, labels, rows);
    EXPECT_NEAR(loss.item(), (std::log1p(std::exp(-1)) + std::log1p(std::exp(-3)) + 3) / 2, 1e-6);
    backward(loss);
    const std::vector<double> grad = cast(x.grad(), DType::f64).to_vector<double>();
    EXPECT_EQ(grad[2], 0);
    EXPECT_EQ(grad[3], 0);
    EXPECT_NEAR(grad[4], (1 / (1 + std::exp(3)) - 1) / 2, 1e-6);
  }
}

TEST(CrossEntropy, LargeLogits) {
  const Tensor labels = Tensor::from<int32_t>({1, 0}, {2});
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = cast(Tensor::from<double>({1e4, 1e4 + 1, -1e4, -1e4 - 2}, {2, 2}), dtype);
    EXPECT_NEAR(cross_entropy(x, labels).item(), (std::log1p(std::exp(-1)) + std::log1p(std::exp(-2))) / 2,
                dtype == DType::f32 ? 1e-6 : 1e-14);
    const Tensor sure = cast(Tensor::from<double>({0, 500, 300, -1e30}, {2, 2}), dtype);
    EXPECT_EQ(cross_entropy(sure, labels).item(), 0);
  }
}

TEST(CrossEntropy, Errors) {
  const Tensor x = ones({3, 2}), y = Tensor::from<int32_t>({0, 1, 0}, {3});
  const auto rows = [](std::vector<int32_t> r) { return Tensor::from(r, {int64_t(r.size())}); };
  verify_errors({
      {[&] { cross_entropy(ones({3}), y); },
       "InvalidArgument: cross_entropy: logits have shape [3] but need two dimensions"},
      {[&] {
         cross_entropy(ones({3, 2}, DType::f16), y);
       },
       "Unsupported: cross_entropy: dtype f16 is not supported, use f32 or f64"},
      {[&] {
         cross_entropy(x, rows({0, 1}));
       },
       "InvalidArgument: cross_entropy: labels are i32 [2] but need to be i32 [3]"},
      {[&] { cross_entropy(x, cast(y, DType::i64)); },
       "InvalidArgument: cross_entropy: labels are i64 [3] but need to be i32 [3]"},
      {[&] { cross_entropy(x, y, cast(y, DType::i64)); },
       "InvalidArgument: cross_entropy: rows are i64 [3] but need to be i32 of one dimension"},
      {[&] { cross_entropy(x, y, rows({})); },
       "InvalidArgument: cross_entropy: no row is chosen, the mean of no losses is undefined"},
      {[&] {
         cross_entropy(ones({0, 2}), rows({}));
       },
       "InvalidArgument: cross_entropy: no row is chosen, the mean of no losses is undefined"},
      {[&] {
         cross_entropy(x, y, rows({1, 3}));
       },
       "InvalidArgument: cross_entropy: rows[1] is 3 but needs to be in [0, 3)"},
      {[&] { cross_entropy(x, y, rows({-1})); }, "InvalidArgument: cross_entropy: rows[0] is -1 but needs to be in [0, 3)"},
      {[&] {
         cross_entropy(x, rows({0, 2, 0}));
       },
       "InvalidArgument: cross_entropy: labels[1] is 2 but needs to be in [0, 2)"},
      {[&] {
         cross_entropy(x, rows({0, 0, -1}), rows({0, 2}));
       },
       "InvalidArgument: cross_entropy: labels[2] is -1 but needs to be in [0, 2)"},
      {[&] {
         cross_entropy(ones({3, 0}), y);
       },
       "InvalidArgument: cross_entropy: labels[0] is 0 but needs to be in [0, 0)"},
  });
}

}  // namespace
}  // namespace tessera::test
