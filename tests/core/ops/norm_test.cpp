#include "tessera/core/ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

/// (x - mean) / sqrt(var + eps) of a list.
std::vector<Real> normalised(const std::vector<Real>& x, double eps) {
  Real mean(0), square(0);
  for (const Real& v : x) mean += v;
  mean /= Real(double(x.size()));
  for (const Real& v : x) square += (v - mean) * (v - mean);
  const Real deviation = sqrt(square / Real(double(x.size())) + Real(eps));
  std::vector<Real> out;
  for (const Real& v : x) out.push_back((v - mean) / deviation);
  return out;
}

constexpr double kEps = 0.125;  // large, so that the differences of central differences are smooth

TEST(Norm, Layer) {
  std::vector<Shape> shapes = {{7}, {2, 3, 5}, {0, 4}, {4, 0}, {1100, 3}};
  for (const int64_t width : kWidths) shapes.push_back({4, width});
  for (const Shape& shape : shapes)
    for (const bool affine : {false, true}) {
      const int64_t width = shape[-1];
      std::vector<Input> inputs = {real(shape).saved()};
      if (affine) {
        inputs.push_back(real({width}).saved());
        inputs.push_back(real({width}));
      }
      verify({.name = "layer_norm " + to_text(shape),
              .inputs = inputs,
              .call =
                  [affine](const Tensors& in) {
                    return affine ? layer_norm(in[0], in[1], in[2], kEps) : layer_norm(in[0], {}, {}, kEps);
                  },
              .reference =
                  [affine, width](const Arrays& in) {
                    Array out(in[0].shape);
                    for (int64_t i = 0; i < out.numel(); i += width) {
                      const auto begin = in[0].values.begin() + i;
                      const std::vector<Real> row = normalised({begin, begin + width}, kEps);
                      for (int64_t j = 0; j < width; ++j)
                        out[i + j] = affine ? row[size_t(j)] * in[1][j] + in[2][j] : row[size_t(j)];
                    }
                    return out;
                  },
              .k = 4,
              .grad_k = shape.numel() > 1000 ? 64.0 : 8.0,
              .smooth = shape.numel() < 250 && width > 1});
    }
}

void verify_batch(const Shape& shape, bool affine) {
  const int64_t channels = shape[1];
  std::vector<Input> inputs = {real(shape).saved()};
  if (affine) {
    inputs.push_back(real({channels}).saved());
    inputs.push_back(real({channels}));
  }
  verify({.name = "batch_norm " + to_text(shape),
          .inputs = inputs,
          .call =
              [affine](const Tensors& in) {
                Tensor none;
                return batch_norm(in[0], affine ? in[1] : Tensor(), affine ? in[2] : Tensor(), none, none, {.eps = kEps});
              },
          .reference =
              [affine, channels](const Arrays& in) {
                Array out(in[0].shape);
                const int64_t inner = channels == 0 ? 1 : out.numel() / (out.dim(0) * channels);
                for (int64_t c = 0; c < channels; ++c) {
                  std::vector<Real> all;
                  for (int64_t i = 0; i < out.numel(); ++i)
                    if (i / inner % channels == c) all.push_back(in[0][i]);
                  all = normalised(all, kEps);
                  size_t next = 0;
                  for (int64_t i = 0; i < out.numel(); ++i)
                    if (i / inner % channels == c) {
                      const Real y = all[next++];
                      out[i] = affine ? y * in[1][c] + in[2][c] : y;
                    }
                }
                return out;
              },
          .k = 4,
          .grad_k = shape.numel() > 1000 ? 64.0 : 8.0,
          .smooth = shape.numel() < 250});
}

TEST(Norm, Batch) {
  for (const bool affine : {false, true}) {
    for (const Shape& shape : {Shape{2, 1}, {5, 3, 4}, {2, 3, 2, 5}, {1, 3, 7}, {1500, 2}, {300, 5}, {3, 2, 1030}})
      verify_batch(shape, affine);
    for (const int64_t width : kWidths) verify_batch({4, width}, affine);
  }
}

/// The first rows of a column tell nothing of the others, and the mean is large beside the spread.
TEST(Norm, BatchMomentsAreExactWhateverTheFirstRowsAre) {
  constexpr int64_t kRows = 1000, kChannels = 21;
  Tensor x = Tensor::empty({kRows, kChannels});
  float* p = x.mutable_data<float>();
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t c = 0; c < kChannels; ++c)
      p[i * kChannels + c] = c % 3 == 0   ? 4096.0F + float((i * 37 + c) % 64) / 32.0F
                             : c % 3 == 1 ? (i % 16 < 4 ? 1000.0F : float(i % 7) - 3.0F)
                                          : (i < 4 ? -3e5F : float((i * 13 + c) % 11));
  Tensor mean = Tensor::from<float>(std::vector<float>(kChannels, 0), {kChannels}),
         var = Tensor::from<float>(std::vector<float>(kChannels, 0), {kChannels});
  batch_norm(x, {}, {}, mean, var, {.training = true, .momentum = 1});
  for (int64_t c = 0; c < kChannels; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < kRows; ++i) sum += double(p[i * kChannels + c]);
    for (int64_t i = 0; i < kRows; ++i) {
      const double d = double(p[i * kChannels + c]) - sum / kRows;
      squares += d * d;
    }
    EXPECT_NEAR(mean.data<float>()[c], sum / kRows, 1e-6 * std::fabs(sum / kRows) + 1e-6) << "channel " << c;
    EXPECT_NEAR(var.data<float>()[c], squares / (kRows - 1), 2e-6 * squares / (kRows - 1)) << "channel " << c;
  }
}

TEST(Norm, BatchWithoutChannels) { verify_batch({2, 0}, false); }

TEST(Norm, BatchInEvaluation) {
  for (const Shape& shape : {Shape{1, 3}, {4, 3}, {2, 3, 4}, {0, 3}})
    verify({.name = "batch_norm in evaluation " + to_text(shape),
            .inputs = {real(shape).saved(), real({3}).saved(), real({3}), real({3}).no_grad(), real({3}, 0.5, 2).no_grad()},
            .call =
                [](const Tensors& in) {
                  Tensor mean = in[3], var = in[4];
                  return batch_norm(in[0], in[1], in[2], mean, var, {.training = false, .eps = kEps});
                },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  const int64_t inner = out.shape.ndim() == 3 ? out.dim(2) : 1;
                  for (int64_t i = 0; i < out.numel(); ++i) {
                    const int64_t c = i / inner % 3;
                    out[i] = (in[0][i] - in[3][c]) / sqrt(in[4][c] + Real(kEps)) * in[1][c] + in[2][c];
                  }
                  return out;
                },
            .k = 3,
            .grad_k = 6});
}

TEST(Norm, RunningMomentsMove) {
  const Tensor x = Tensor::from<double>({1, 10, 3, 20, 5, 60}, {3, 2});
  Tensor mean = Tensor::from<double>({1, 0}, {2}), var = Tensor::from<double>({2, 1}, {2});
  batch_norm(x, {}, {}, mean, var, {.momentum = 0.25});
  EXPECT_EQ(mean.to_vector<double>(), (std::vector<double>{0.75 * 1 + 0.25 * 3, 0.25 * 30}));
  EXPECT_EQ(var.to_vector<double>(), (std::vector<double>{0.75 * 2 + 0.25 * 4, 0.75 + 0.25 * 700}));  // unbiased
  const std::vector<double> before = mean.to_vector<double>();
  batch_norm(x, {}, {}, mean, var, {.training = false});
  EXPECT_EQ(mean.to_vector<double>(), before);
}

// One row has no variance: an error in training, never NaN; evaluation uses the running moments.
TEST(Norm, OneRow) {
  const Tensor x = Tensor::from<float>({2}, {1, 1});
  Tensor mean = ones({1}), var = full({1}, 4);
  EXPECT_NEAR(batch_norm(x, {}, {}, mean, var, {.training = false, .eps = 1e-5}).item(), 0.4999994, 1e-7);
  verify_errors(
      {{[&] { batch_norm(x, {}, {}, mean, var, {}); },
        "InvalidArgument: batch_norm: x has shape [1, 1], 1 value(s) a channel have no variance in training; use larger "
        "batches, or evaluation"}});
  EXPECT_EQ(mean.item(), 1);
  EXPECT_EQ(var.item(), 4);
}

// A mean that is large beside the spread costs digits only in x itself.
TEST(Norm, LargeMeans) {
  const Tensor x = Tensor::from<float>({10000, 10001, 10002, 10003}, {1, 4});
  const Tensor y = layer_norm(x);
  const double deviation = std::sqrt(1.25 + 1e-5);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y.data<float>()[i], (i - 1.5) / deviation, 1e-3);
}

TEST(Norm, Errors) {
  const Tensor x = zeros({4, 3}), w = zeros({2});
  Tensor none, mean = zeros({3}), wide = zeros({3}, DType::f64);
  verify_errors({
      {[&] { layer_norm(zeros({})); }, "InvalidArgument: layer_norm: x is a scalar but needs a dimension"},
      {[&] { layer_norm(x, w); }, "InvalidArgument: layer_norm: weight is f32 [2] but needs to be f32 [3]"},
      {[&] { layer_norm(x, {}, wide); }, "InvalidArgument: layer_norm: bias is f64 [3] but needs to be f32 [3]"},
      {[&] {
         layer_norm(zeros({2, 2}, DType::i32));
       },
       "Unsupported: layer_norm: dtype i32 is not supported, use f32 or f64"},
      {[&] { batch_norm(zeros({3}), {}, {}, none, none); },
       "InvalidArgument: batch_norm: x has shape [3] but needs to be [N, C, ..]"},
      {[&] { batch_norm(x, {}, {}, mean, none); },
       "InvalidArgument: batch_norm: running_mean and running_var need to be given together"},
      {[&] { batch_norm(x, {}, {}, mean, wide); },
       "InvalidArgument: batch_norm: running_var is f64 [3] but needs to be f32 [3]"},
  });
}

}  // namespace
}  // namespace tessera::test
