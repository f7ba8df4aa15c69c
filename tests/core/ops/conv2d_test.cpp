#include "tessera/core/ops/conv2d.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

struct Sizes {
  Shape x, weight;
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = false;
  Activation activation = Activation::none;
};

std::string name_of(const Sizes& s) {
  return "conv2d " + to_text(s.x) + " " + to_text(s.weight) + " stride " + std::to_string(s.stride.rows) + " padding " +
         std::to_string(s.padding.rows) + " dilation " + std::to_string(s.dilation.rows) + " groups " +
         std::to_string(s.groups);
}

/// Seven loops, window by window.
Array reference(const Sizes& s, const Arrays& in) {
  const Array &x = in[0], &w = in[1];
  const int64_t kh = s.weight[2], kw = s.weight[3], h = s.x[2], wd = s.x[3], cg = s.weight[1], og = s.weight[0] / s.groups;
  const int64_t oh = (h + 2 * s.padding.rows - s.dilation.rows * (kh - 1) - 1) / s.stride.rows + 1,
                ow = (wd + 2 * s.padding.columns - s.dilation.columns * (kw - 1) - 1) / s.stride.columns + 1;
  Array out(Shape{s.x[0], s.weight[0], oh, ow});
  for (int64_t at = 0; at < out.numel(); ++at) {
    const int64_t j = at % ow, i = at / ow % oh, o = at / (ow * oh) % s.weight[0], n = at / (ow * oh * s.weight[0]);
    Real sum = s.bias ? in[2][o] : Real(0);
    for (int64_t c = 0; c < cg; ++c)
      for (int64_t p = 0; p < kh; ++p)
        for (int64_t q = 0; q < kw; ++q) {
          const int64_t r = i * s.stride.rows - s.padding.rows + p * s.dilation.rows,
                        t = j * s.stride.columns - s.padding.columns + q * s.dilation.columns;
          if (r < 0 || r >= h || t < 0 || t >= wd) continue;
          sum += x[((n * s.x[1] + o / og * cg + c) * h + r) * wd + t] * w[((o * cg + c) * kh + p) * kw + q];
        }
    switch (s.activation) {
      case Activation::relu: sum = sum > Real(0) ? sum : Real(0); break;
      case Activation::tanh: sum = tanh(sum); break;
      default: break;
    }
    out[at] = sum;
  }
  return out;
}

void verify_conv(const Sizes& s, bool values = true) {
  std::vector<Input> inputs = {real(s.x).saved(), real(s.weight).saved()};
  if (s.bias) inputs.push_back(real({s.weight[0]}));
  Case c{.name = name_of(s),
         .inputs = inputs,
         .call =
             [s](const Tensors& in) {
               return conv2d(in[0], in[1],
                             {.stride = s.stride,
                              .padding = s.padding,
                              .dilation = s.dilation,
                              .groups = s.groups,
                              .bias = s.bias ? in[2] : Tensor(),
                              .activation = s.activation});
             },
         .reference = nullptr,
         .k = double(s.weight.numel() / s.weight[0]) / 4 + 2,
         .grad_k = double(s.weight.numel()) / 4 + double(s.x.numel()) / 4 + 2,
         .smooth = values && s.x.numel() + s.weight.numel() < 600 && s.activation != Activation::relu,
         .saves_output = s.activation != Activation::none};
  if (values) c.reference = [s](const Arrays& in) { return reference(s, in); };
  verify(c);
}

TEST(Conv2d, Kernels) {
  verify_conv({.x = {2, 3, 5, 6}, .weight = {4, 3, 3, 3}});
  verify_conv({.x = {2, 3, 5, 6}, .weight = {4, 3, 3, 3}, .padding = 1, .bias = true});
  verify_conv({.x = {3, 5, 4, 4}, .weight = {7, 5, 1, 1}, .bias = true});
  verify_conv({.x = {1, 1, 1, 1}, .weight = {1, 1, 1, 1}});
  verify_conv({.x = {1, 2, 4, 7}, .weight = {3, 2, 4, 2}});
  verify_conv({.x = {2, 1, 9, 8}, .weight = {2, 1, 7, 7}, .padding = 3});
  verify_conv({.x = {1, 17, 3, 3}, .weight = {9, 17, 3, 3}, .padding = 1});
}

TEST(Conv2d, StridesPaddingDilation) {
  verify_conv({.x = {2, 2, 8, 7}, .weight = {3, 2, 3, 3}, .stride = 2, .padding = 1, .bias = true});
  verify_conv({.x = {2, 2, 8, 7}, .weight = {3, 2, 1, 1}, .stride = 2});
  verify_conv({.x = {1, 2, 9, 11}, .weight = {2, 2, 3, 2}, .stride = {1, 3}, .padding = {2, 0}, .dilation = {2, 4}});
  verify_conv({.x = {1, 1, 6, 6}, .weight = {1, 1, 2, 2}, .stride = 3, .padding = 2});  // windows of nothing but padding
  verify_conv({.x = {1, 1, 7, 7}, .weight = {1, 1, 2, 2}, .stride = 4});                // rows that no window reaches
  verify_conv({.x = {1, 2, 5, 5}, .weight = {2, 2, 3, 3}, .padding = 5, .dilation = 3});
}

TEST(Conv2d, GroupsAndDepthwise) {
  verify_conv({.x = {2, 4, 5, 5}, .weight = {6, 2, 3, 3}, .padding = 1, .groups = 2, .bias = true});
  verify_conv({.x = {2, 6, 5, 4}, .weight = {6, 1, 3, 3}, .padding = 1, .groups = 6, .bias = true});
  verify_conv({.x = {1, 24, 6, 6}, .weight = {24, 1, 3, 3}, .stride = 2, .padding = 1, .groups = 24});
  verify_conv({.x = {2, 3, 4, 4}, .weight = {6, 1, 2, 2}, .groups = 3});
}

TEST(Conv2d, Activations) {
  verify_conv({.x = {2, 3, 4, 5}, .weight = {4, 3, 3, 3}, .padding = 1, .bias = true, .activation = Activation::relu});
  verify_conv({.x = {2, 3, 4, 5}, .weight = {4, 3, 3, 3}, .padding = 1, .activation = Activation::tanh});
  verify_conv({.x = {2, 4, 4, 4}, .weight = {4, 1, 3, 3}, .groups = 4, .bias = true, .activation = Activation::relu});
}

// A batch of one is cut by channels, weights are large enough for runs of several images, batches end in a shorter run.
TEST(Conv2d, TilesOfChannelsAndRunsOfImages) {
  verify_conv({.x = {1, 64, 3, 3}, .weight = {64, 64, 1, 1}, .bias = true});
  verify_conv({.x = {3, 64, 2, 2}, .weight = {128, 64, 1, 1}, .bias = true});
  verify_conv({.x = {9, 16, 2, 2}, .weight = {32, 16, 1, 1}});
  verify_conv({.x = {1, 64, 4, 4}, .weight = {64, 1, 3, 3}, .padding = 1, .groups = 64});
  verify_conv({.x = {11, 32, 7, 7}, .weight = {64, 32, 3, 3}, .padding = 1}, false);
  verify_conv({.x = {5, 64, 14, 14}, .weight = {128, 64, 3, 3}, .stride = 2, .padding = 1, .bias = true}, false);
  verify_conv({.x = {5, 3, 40, 40}, .weight = {64, 3, 7, 7}, .stride = 2, .padding = 3}, false);
}

TEST(Conv2d, NoImages) {
  verify_conv({.x = {0, 3, 5, 6}, .weight = {4, 3, 3, 3}, .bias = true});
  verify_conv({.x = {0, 4, 5, 6}, .weight = {4, 1, 3, 3}, .groups = 4, .activation = Activation::relu});
}

TEST(Conv2d, NanComesThrough) {
  Tensor x = ones({1, 1, 4, 4});
  x.mutable_data<float>()[0] = NAN;
  const Tensor y = conv2d(x, ones({1, 1, 2, 2}), {.activation = Activation::relu});
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  for (int i = 1; i < 9; ++i) EXPECT_EQ(y.data<float>()[i], 4);
}

TEST(Conv2d, Errors) {
  const Tensor x = zeros({2, 4, 5, 6}), w = zeros({6, 4, 3, 3});
  verify_errors({
      {[&] {
         conv2d(zeros({4, 5, 6}), w);
       },
       "InvalidArgument: conv2d: x has shape [4, 5, 6] and weight [6, 4, 3, 3] but they need to be [N, C, H, W] and [O, C / "
       "groups, KH, KW]"},
      {[&] {
         conv2d(x, zeros({6, 4, 3, 3}, DType::f64));
       },
       "InvalidArgument: conv2d: x is f32 but weight is f64"},
      {[&] {
         conv2d(zeros({1, 1, 2, 2}, DType::i32), zeros({1, 1, 1, 1}, DType::i32));
       },
       "Unsupported: conv2d: dtype i32 is not supported, use f32 or f64"},
      {[&] { conv2d(x, w, {.stride = 0}); },
       "InvalidArgument: conv2d: stride is (0, 0), padding (0, 0) and dilation (1, 1) but they need to be at least 1, 0 and "
       "1"},
      {[&] { conv2d(x, w, {.groups = 3}); },
       "InvalidArgument: conv2d: 3 groups do not divide 4 input and 6 output channels"},
      {[&] { conv2d(x, w, {.groups = 2}); },
       "InvalidArgument: conv2d: x has shape [2, 4, 5, 6] in 2 group(s) but weight [6, 4, 3, 3], which is for 8 channels"},
      {[&] {
         conv2d(x, zeros({0, 4, 3, 3}));
       },
       "InvalidArgument: conv2d: weight has shape [0, 4, 3, 3] but needs an element"},
      {[&] {
         conv2d(x, zeros({6, 4, 6, 3}));
       },
       "InvalidArgument: conv2d: x has shape [2, 4, 5, 6] and padding (0, 0), which a kernel of 6 x 3 with dilation (1, 1) "
       "does "
       "not fit into"},
      {[&] {
         conv2d(x, w, {.padding = {1, 0}, .dilation = {2, 3}});
       },
       "InvalidArgument: conv2d: x has shape [2, 4, 5, 6] and padding (1, 0), which a kernel of 3 x 3 with dilation (2, 3) "
       "does "
       "not fit into"},
      {[&] { conv2d(x, w, {.bias = zeros({5})}); }, "InvalidArgument: conv2d: bias is f32 [5] but needs to be f32 [6]"},
  });
}

}  // namespace
}  // namespace tessera::test
