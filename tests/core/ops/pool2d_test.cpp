#include "tessera/core/ops/pool2d.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

struct Sizes {
  Shape x;
  Pair kernel = 2, stride = 2, padding = 0, dilation = 1;
};

std::string name_of(const char* op, const Sizes& s) {
  return std::string(op) + " " + to_text(s.x) + " kernel " + std::to_string(s.kernel.rows) + " x " +
         std::to_string(s.kernel.columns) + " stride " + std::to_string(s.stride.rows) + " padding " +
         std::to_string(s.padding.rows) + " dilation " + std::to_string(s.dilation.rows);
}

/// f(elements of the window that lie inside) for each window.
template <class F>
Array windows(const Sizes& s, const Array& x, F f) {
  const int64_t h = s.x[2], w = s.x[3];
  const int64_t oh = (h + 2 * s.padding.rows - s.dilation.rows * (s.kernel.rows - 1) - 1) / s.stride.rows + 1,
                ow = (w + 2 * s.padding.columns - s.dilation.columns * (s.kernel.columns - 1) - 1) / s.stride.columns + 1;
  Array out(Shape{s.x[0], s.x[1], oh, ow});
  for (int64_t at = 0; at < out.numel(); ++at) {
    std::vector<Real> inside;
    for (int64_t p = 0; p < s.kernel.rows; ++p)
      for (int64_t q = 0; q < s.kernel.columns; ++q) {
        const int64_t r = at / ow % oh * s.stride.rows - s.padding.rows + p * s.dilation.rows,
                      t = at % ow * s.stride.columns - s.padding.columns + q * s.dilation.columns;
        if (r >= 0 && r < h && t >= 0 && t < w) inside.push_back(x[(at / (oh * ow) * h + r) * w + t]);
      }
    out[at] = f(inside);
  }
  return out;
}

const std::vector<Sizes>& all_sizes() {
  static const std::vector<Sizes> sizes = {
      {.x = {2, 3, 4, 6}},
      {.x = {1, 2, 7, 5}, .kernel = 3, .stride = 2, .padding = 1},
      {.x = {2, 1, 5, 9}, .kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 0}},
      {.x = {1, 1, 1, 1}, .kernel = 1, .stride = 1},
      {.x = {3, 1, 6, 6}, .kernel = 6, .stride = 6},
      {.x = {1, 2, 4, 33}, .kernel = 3, .stride = 3},
      {.x = {1, 1, 8, 8}, .kernel = 2, .stride = 3},
      {.x = {0, 3, 4, 4}},
      {.x = {2, 0, 4, 4}},
      {.x = {40, 30, 6, 6}, .kernel = 3, .stride = 2, .padding = 1},
  };
  return sizes;
}

Real largest(const std::vector<Real>& list) {
  Real best = list[0];
  for (const Real& v : list) best = v > best ? v : best;
  return best;
}

TEST(Pool2d, Max) {
  std::vector<Sizes> sizes = all_sizes();
  sizes.push_back({.x = {1, 2, 9, 7}, .kernel = 3, .stride = 1, .padding = 2, .dilation = 2});
  sizes.push_back({.x = {1, 1, 8, 9}, .kernel = {2, 3}, .stride = 2, .padding = {1, 0}, .dilation = {3, 2}});
  for (const Sizes& s : sizes)
    verify({.name = name_of("max_pool2d", s),
            .inputs = {apart(s.x)},
            .call =
                [s](const Tensors& in) {
                  return max_pool2d(in[0], s.kernel, {.stride = s.stride, .padding = s.padding, .dilation = s.dilation});
                },
            .reference = [s](const Arrays& in) { return windows(s, in[0], largest); },
            .k = 0,
            .smooth = s.x.numel() < 250});
}

TEST(Pool2d, Average) {
  for (const Sizes& s : all_sizes())
    for (const bool count_padding : {false, true})
      verify({.name = name_of(count_padding ? "avg_pool2d" : "avg_pool2d without padding", s),
              .inputs = {real(s.x)},
              .call =
                  [=](const Tensors& in) {
                    return avg_pool2d(in[0], s.kernel,
                                      {.stride = s.stride, .padding = s.padding, .count_padding = count_padding});
                  },
              .reference =
                  [=](const Arrays& in) {
                    return windows(s, in[0], [&](const std::vector<Real>& list) {
                      Real sum(0);
                      for (const Real& v : list) sum += v;
                      return sum / Real(count_padding ? double(s.kernel.rows * s.kernel.columns) : double(list.size()));
                    });
                  },
              .k = 2,
              .grad_k = 4,
              .smooth = s.x.numel() < 250});
}

TEST(Pool2d, AdaptiveAverage) {
  for (const auto& [shape, size] : {std::pair<Shape, Pair>{{2, 3, 7, 7}, 1},
                                    {{1, 2, 5, 7}, {3, 2}},
                                    {{1, 2, 3, 4}, {5, 4}},
                                    {{0, 2, 3, 3}, 2},
                                    {{2, 1, 1, 1}, 3}})
    verify({.name = "adaptive_avg_pool2d " + to_text(shape) + " to " + std::to_string(size.rows),
            .inputs = {real(shape)},
            .call = [size = size](const Tensors& in) { return adaptive_avg_pool2d(in[0], size); },
            .reference =
                [size = size](const Arrays& in) {
                  const Array& x = in[0];
                  const int64_t h = x.dim(2), w = x.dim(3);
                  Array out(Shape{x.dim(0), x.dim(1), size.rows, size.columns});
                  for (int64_t at = 0; at < out.numel(); ++at) {
                    const int64_t i = at / size.columns % size.rows, j = at % size.columns,
                                  plane = at / (size.rows * size.columns);
                    Real sum(0);
                    int64_t count = 0;
                    for (int64_t r = 0; r < h; ++r)
                      for (int64_t c = 0; c < w; ++c)
                        if ((r + 1) * size.rows > i * h && r * size.rows < (i + 1) * h && (c + 1) * size.columns > j * w &&
                            c * size.columns < (j + 1) * w) {
                          sum += x[(plane * h + r) * w + c];
                          ++count;
                        }
                    out[at] = sum / Real(double(count));
                  }
                  return out;
                },
            .k = 2,
            .grad_k = 4});
}

TEST(Pool2d, StrideIsTheKernelByDefault) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 2, 4});
  EXPECT_EQ(max_pool2d(x, 2).to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_EQ(avg_pool2d(x, 2).to_vector<float>(), (std::vector<float>{3.5, 5.5}));
  EXPECT_EQ(adaptive_avg_pool2d(x).to_vector<float>(), (std::vector<float>{4.5}));
}

// Of equal ones the first in row-major order gets the whole gradient; NaN wins, and padding never does.
TEST(Pool2d, TiesNanAndPadding) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = full({1, 1, 3, 3}, 7, dtype);
    x.set_requires_grad();
    backward(max_pool2d(x, 3), ones({1, 1, 1, 1}, dtype));
    EXPECT_EQ(cast(x.grad(), DType::f64).to_vector<double>(), (std::vector<double>{1, 0, 0, 0, 0, 0, 0, 0, 0}));

    Tensor y = cast(Tensor::from<double>({1, 5, 2, 5, 0, 5, 5, 5, 5}, {1, 1, 3, 3}), dtype).detach();
    y.set_requires_grad();
    backward(max_pool2d(y, 2, {.stride = 1}), ones({1, 1, 2, 2}, dtype));
    EXPECT_EQ(cast(y.grad(), DType::f64).to_vector<double>(), (std::vector<double>{0, 2, 0, 1, 0, 1, 0, 0, 0}));

    Tensor z = cast(Tensor::from<double>({-1, NAN, -3, -4}, {1, 1, 2, 2}), dtype).detach();
    z.set_requires_grad();
    const Tensor out = max_pool2d(z, 2, {.stride = 1, .padding = 1});
    const std::vector<double> values = cast(out, DType::f64).to_vector<double>();
    EXPECT_EQ(values[0], -1);
    EXPECT_TRUE(std::isnan(values[1]) && std::isnan(values[2]) && std::isnan(values[4]) && std::isnan(values[5]));
    EXPECT_EQ(values[3], -1);
    EXPECT_EQ(values[8], -4);
    backward(out, ones(out.shape(), dtype));
    EXPECT_EQ(cast(z.grad(), DType::f64).to_vector<double>(), (std::vector<double>{2, 4, 2, 1}));
  }
}

TEST(Pool2d, Errors) {
  const Tensor x = zeros({2, 4, 5, 6});
  verify_errors({
      {[&] {
         max_pool2d(zeros({4, 5, 6}), 2);
       },
       "InvalidArgument: max_pool2d: x has shape [4, 5, 6] but needs to be [N, C, H, W]"},
      {[&] {
         max_pool2d(zeros({1, 1, 2, 2}, DType::i32), 2);
       },
       "Unsupported: max_pool2d: dtype i32 is not supported, use f32 or f64"},
      {[&] {
         avg_pool2d(zeros({1, 1, 0, 2}), 1);
       },
       "InvalidArgument: avg_pool2d: x has shape [1, 1, 0, 2] but an image needs 1 to 2^31 - 1 elements"},
      {[&] {
         max_pool2d(x, {6, 2});
       },
       "InvalidArgument: max_pool2d: x has shape [2, 4, 5, 6] and padding (0, 0), which a kernel of 6 x 2 with dilation (1, "
       "1) "
       "does not fit into"},
      {[&] { avg_pool2d(x, 3, {.padding = 2}); },
       "InvalidArgument: avg_pool2d: padding is (2, 2) but needs to be in [0, half of the kernel's (3, 3)]"},
      {[&] { avg_pool2d(x, 0); },
       "InvalidArgument: avg_pool2d: kernel is (0, 0), stride (0, 0) and dilation (1, 1) but they need to be at least 1"},
      {[&] {
         max_pool2d(zeros({1, 1, 1, 1}), 2, {.stride = 1, .padding = 2, .dilation = 3});
       },
       "InvalidArgument: max_pool2d: x has shape [1, 1, 1, 1], of which a window with dilation (3, 3) holds nothing but "
       "padding"},
      {[&] {
         adaptive_avg_pool2d(x, {0, 1});
       },
       "InvalidArgument: adaptive_avg_pool2d: a size of (0, 1) was asked but it needs to be at least 1"},
  });
}

}  // namespace
}  // namespace tessera::test
