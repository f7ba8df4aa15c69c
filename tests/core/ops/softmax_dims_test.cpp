#include "tessera/core/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

/// Without the shift by the maximum: another formula for the same number.
Array reference(const Array& x, int dim, bool logarithm) {
  Array out(x.shape);
  const Lines lines = lines_of("", x.shape, dim);
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    const auto at = [&](int64_t j) { return (line / lines.inner * lines.length + j) * lines.inner + line % lines.inner; };
    Real sum(0);
    for (int64_t j = 0; j < lines.length; ++j) sum += exp(x[at(j)]);
    for (int64_t j = 0; j < lines.length; ++j) out[at(j)] = logarithm ? x[at(j)] - log(sum) : exp(x[at(j)]) / sum;
  }
  return out;
}

std::vector<Shape> shapes() {
  // Rows around the group of 16 and the longest short row of 64, lines side by side, long rows.
  std::vector<Shape> out = {{5}, {0, 3}, {3, 0}, {17, 7}, {15, 64}, {16, 65}, {2, 3, 4}, {2, 5, 17}, {3, 40, 1}, {1, 1000}};
  for (const int64_t width : kWidths) out.push_back({5, width});
  return out;
}

TEST(SoftmaxDims, OverEveryDimension) {
  for (const bool logarithm : {false, true})
    for (const Shape& shape : shapes())
      for (int dim = 0; dim < shape.ndim(); ++dim)
        verify({.name = std::string(logarithm ? "log_softmax " : "softmax ") + to_text(shape) + " " + std::to_string(dim),
                .inputs = {real(shape, -3, 3)},
                .call = [dim, logarithm](const Tensors& in) {
                  return logarithm ? log_softmax(in[0], dim) : softmax(in[0], dim - in[0].ndim());
                },
                .reference = [dim, logarithm](const Arrays& in) { return reference(in[0], dim, logarithm); },
                .k = 4,
                .grad_k = shape[dim] > 100 ? 40.0 : 12.0,
                .smooth = shape.numel() < 400,
                .saves_output = true});
}

TEST(SoftmaxDims, LongEnoughToFork) {
  for (const Shape& shape : {Shape{3000, 7}, Shape{40, 700}, Shape{9, 11, 130}})
    verify({.name = "softmax " + to_text(shape),
            .inputs = {real(shape, -3, 3)},
            .call = [](const Tensors& in) { return softmax(in[0], 1); },
            .reference = [](const Arrays& in) { return reference(in[0], 1, false); },
            .k = 16,
            .grad_k = 64,
            .smooth = false,
            .saves_output = true});
}

TEST(SoftmaxDims, SpecialValues) {
  const Restore restore;
  const double inf = INFINITY;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int64_t width : {2, 100}) {  // in a group, and on its own
        const auto row = [&](double a, double b) {
          std::vector<double> values(size_t(width), -inf);
          values[0] = a;
          values[size_t(width) - 1] = b;
          const Tensor y = cast(softmax(cast(Tensor::from(values, {1, width}), dtype)), DType::f64);
          return std::pair(y.data<double>()[0], y.data<double>()[width - 1]);
        };
        // Shifted by the row's own maximum, whatever its size.
        EXPECT_NEAR(row(1000, 1001).first, 0.2689414, 1e-6);
        EXPECT_NEAR(row(1000, 1001).second, 0.7310586, 1e-6);
        EXPECT_NEAR(row(-1000, -1001).first, 0.7310586, 1e-6);
        EXPECT_EQ(row(-inf, 50), std::pair(0.0, 1.0));
        EXPECT_TRUE(std::isnan(row(NAN, 1).second));
        EXPECT_TRUE(std::isnan(row(inf, 1).first));
        EXPECT_EQ(row(1e-30, -1e30), std::pair(1.0, 0.0));
      }
  }
}

TEST(SoftmaxDims, Errors) {
  verify_errors({
      {[] { softmax(zeros({4, 3}), 2); }, "InvalidArgument: softmax: dimension 2 does not exist in shape [4, 3]"},
      {[] { log_softmax(zeros({})); }, "InvalidArgument: log_softmax: dimension -1 does not exist in shape []"},
      {[] { softmax(zeros({4, 3}, DType::i32)); }, "Unsupported: softmax: dtype i32 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
