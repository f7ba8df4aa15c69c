#include "tessera/core/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

struct Class {
  bool nll = false, weighted = false, ignore = false, chosen = false;
  double smoothing = 0;
  Reduction reduction = Reduction::mean;
};

/// Inputs: x, labels, then class weights and rows where wanted.
Case class_case(const Class& c, int64_t n, int64_t classes, int64_t rows) {
  std::vector<Input> inputs = {real({n, classes}, -2, 2).saved()};
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(c.ignore && i % 3 == 1 ? -1 : (i * 5 + 1) % classes);
  inputs.push_back(given_ids({n}, labels).saved());
  inputs.push_back(real({classes}, 0.5, 2).no_grad());
  std::vector<int64_t> chosen;
  for (int64_t r = 0; r < rows; ++r) chosen.push_back((r * 7 + 2) % n);
  Input list = given_ids({rows}, chosen);
  inputs.push_back(c.chosen ? list.saved() : list);
  const auto call = [c](const Tensors& in) {
    CrossEntropyOptions options{.label_smoothing = c.smoothing, .ignore_missing = c.ignore, .reduction = c.reduction};
    if (c.weighted) options.class_weights = in[2];
    const Tensor which = c.chosen ? in[3] : Tensor();
    return c.nll ? nll_loss(in[0], in[1], which, options) : cross_entropy(in[0], in[1], which, options);
  };
  const auto reference = [c](const Arrays& in) {
    const Array &x = in[0], &y = in[1], &weights = in[2];
    const int64_t width = x.dim(1), count = c.chosen ? in[3].numel() : x.dim(0);
    Array each(Shape{count});
    Real sum(0), weight_sum(0);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t i = c.chosen ? in[3].id(r) : r, label = y.id(i);
      if (label < 0) continue;
      Real norm(0);
      if (!c.nll) {
        for (int64_t j = 0; j < width; ++j) norm += exp(x(i, j));
        norm = log(norm);
      }
      const auto weight = [&](int64_t j) { return c.weighted ? weights[j] : Real(1); };
      each[r] = Real(1 - c.smoothing) * weight(label) * (norm - x(i, label));
      for (int64_t j = 0; c.smoothing > 0 && j < width; ++j)
        each[r] += Real(c.smoothing / double(width)) * weight(j) * (norm - x(i, j));
      sum += each[r];
      weight_sum += weight(label);
    }
    if (c.reduction == Reduction::none) return each;
    Array out{Shape{}};
    out[0] = c.reduction == Reduction::sum ? sum : sum / weight_sum;
    return out;
  };
  return {.name = std::string(c.nll ? "nll_loss" : "cross_entropy") + (c.weighted ? " weighted" : "") +
                  (c.ignore ? " ignoring" : "") + (c.chosen ? " chosen" : "") + " s " + std::to_string(c.smoothing) + " r " +
                  std::to_string(int(c.reduction)) + " " + std::to_string(n) + " x " + std::to_string(classes),
          .inputs = inputs,
          .call = call,
          .reference = reference,
          .k = 4,
          .grad_k = 24};
}

TEST(LossForms, CrossEntropyInAllItsForms) {
  for (const bool nll : {false, true})
    for (const bool weighted : {false, true})
      for (const bool ignore : {false, true})
        for (const bool chosen : {false, true})
          for (const double smoothing : {0.0, 0.125})
            for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
              if (nll && smoothing > 0) continue;
              verify(class_case({nll, weighted, ignore, chosen, smoothing, reduction}, 19, 5, 23));
            }
  for (const int64_t classes : kWidths) verify(class_case({}, 7, classes, 0));
  for (const int64_t classes : {2, 65}) verify(class_case({.weighted = true, .chosen = true, .smoothing = 0.25}, 20, classes, 9));
}

TEST(LossForms, CrossEntropyLongEnoughToFork) {
  for (const bool chosen : {false, true}) {
    Case c = class_case({.chosen = chosen}, 3000, 7, 2000);
    c.smooth = false;
    verify(c);
  }
}

TEST(LossForms, CrossEntropyOfLargeLogits) {
  Tensor x = Tensor::from<float>({1000, 1001, -1000, -1001}, {2, 2});
  x.set_requires_grad();
  const Tensor y = cross_entropy(x, Tensor::from<int32_t>({0, 1}, {2}));
  EXPECT_NEAR(y.item(), (1.3132617 + 1.3132617) / 2, 1e-6);
  backward(y);
  EXPECT_NEAR(x.grad().data<float>()[0], (0.2689414 - 1) / 2, 1e-6);
}

Real softplus(const Real& x) { return x > 0 ? x + log(Real(1) + exp(-x)) : log(Real(1) + exp(x)); }

Case pair_case(const std::string& name, const Shape& shape, Reduction reduction,
               std::function<Tensor(const Tensors&)> call, std::function<Real(const Arrays&, int64_t)> term, bool target_grad) {
  Input x = real(shape, -2, 2), t = target_grad ? real(shape, -2, 2) : real(shape, 0, 1).no_grad();
  return {.name = name + " " + to_text(shape) + " " + std::to_string(int(reduction)),
          .inputs = {x.saved(), t.saved()},
          .call = std::move(call),
          .reference =
              [term = std::move(term), reduction, shape](const Arrays& in) {
                Array each(shape), out{Shape{}};
                for (int64_t i = 0; i < each.numel(); ++i) {
                  each[i] = term(in, i);
                  out[0] += each[i];
                }
                if (reduction == Reduction::mean) out[0] /= Real(double(each.numel()));
                return reduction == Reduction::none ? each : out;
              },
          .k = 3,
          .grad_k = 6};
}

std::vector<Shape> pair_shapes() {
  std::vector<Shape> out = {{}, {3, 4, 2}, {5000}};
  for (const int64_t width : kWidths) out.push_back({3, width});
  return out;
}

TEST(LossForms, MeanSquareAbsoluteSmooth) {
  for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none})
    for (const Shape& shape : pair_shapes()) {
      const bool small = shape.numel() < 250;
      Case square = pair_case(
          "mse_loss", shape, r, [r](const Tensors& in) { return mse_loss(in[0], in[1], r); },
          [](const Arrays& in, int64_t i) { return (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]); }, true);
      square.smooth = small;
      verify(square);
      Case absolute = pair_case(
          "l1_loss", shape, r, [r](const Tensors& in) { return l1_loss(in[0], in[1], r); },
          [](const Arrays& in, int64_t i) { return abs(in[0][i] - in[1][i]); }, true);
      absolute.smooth = false;
      verify(absolute);
      Case smooth = pair_case(
          "smooth_l1_loss", shape, r, [r](const Tensors& in) { return smooth_l1_loss(in[0], in[1], 0.5, r); },
          [](const Arrays& in, int64_t i) {
            const Real d = abs(in[0][i] - in[1][i]);
            return d < 0.5 ? d * d / Real(2 * 0.5) : d - Real(0.25);
          },
          true);
      smooth.smooth = false;
      verify(smooth);
    }
}

TEST(LossForms, BinaryCrossEntropy) {
  for (const Reduction r : {Reduction::mean, Reduction::sum, Reduction::none})
    for (const Shape& shape : pair_shapes()) {
      Case c = pair_case(
          "bce_with_logits", shape, r,
          [r](const Tensors& in) { return bce_with_logits(in[0], in[1], {.reduction = r}); },
          [](const Arrays& in, int64_t i) {
            return in[1][i] * softplus(-in[0][i]) + (Real(1) - in[1][i]) * softplus(in[0][i]);
          },
          false);
      c.smooth = shape.numel() < 250;
      verify(c);
      if (shape.ndim() == 0) continue;
      c.name += " weighted";
      c.inputs.push_back(real({shape[-1]}, 0.5, 3).no_grad().saved());
      c.call = [r](const Tensors& in) { return bce_with_logits(in[0], in[1], {.positive_weights = in[2], .reduction = r}); };
      c.reference = [r, shape](const Arrays& in) {
        Array each(shape), out{Shape{}};
        for (int64_t i = 0; i < each.numel(); ++i) {
          each[i] = in[2][i % shape[-1]] * in[1][i] * softplus(-in[0][i]) + (Real(1) - in[1][i]) * softplus(in[0][i]);
          out[0] += each[i];
        }
        if (r == Reduction::mean) out[0] /= Real(double(each.numel()));
        return r == Reduction::none ? each : out;
      };
      verify(c);
    }
}

// Entries without a label are neither positive nor negative, nor counted.
TEST(LossForms, BinaryCrossEntropySkipsMissingLabels) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = cast(Tensor::from<double>({0, 0, 2}, {3}), dtype);
    x.set_requires_grad();
    const Tensor t = cast(Tensor::from<double>({1, NAN, 0}, {3}), dtype);
    const Tensor loss = bce_with_logits(x, t, {.skip_nan = true});
    EXPECT_NEAR(loss.item(), 1.4100376, 1e-6);
    backward(loss);
    const Tensor grad = cast(x.grad(), DType::f64);
    EXPECT_EQ(grad.data<double>()[1], 0);
    EXPECT_NEAR(grad.data<double>()[0], -0.25, 1e-7);
    EXPECT_TRUE(std::isnan(bce_with_logits(x.detach(), t).item()));
    EXPECT_EQ(bce_with_logits(x.detach(), t, {.skip_nan = true, .reduction = Reduction::none}).numel(), 3);
  }
}

TEST(LossForms, ExtremeLogits) {
  const Tensor x = Tensor::from<float>({1000, -1000, 1000, -1000}, {4}), t = Tensor::from<float>({1, 0, 0, 1}, {4});
  EXPECT_EQ(bce_with_logits(x, t, {.reduction = Reduction::none}).to_vector<float>(), (std::vector<float>{0, 0, 1000, 1000}));
}

TEST(LossForms, Errors) {
  const Tensor x = zeros({3, 4}), y = Tensor::from<int32_t>({0, 5, -1}, {3}), missing = Tensor::from<int32_t>({-1, -1, -1}, {3});
  const Tensor good = zeros({3}, DType::i32), nan = full({3, 4}, NAN);
  verify_errors({
      {[&] { cross_entropy(zeros({3}), good); }, "InvalidArgument: cross_entropy: logits have shape [3] but need two dimensions"},
      {[&] { cross_entropy(cast(x, DType::i32), good); },
       "Unsupported: cross_entropy: dtype i32 is not supported, use f32 or f64"},
      {[&] { cross_entropy(x, zeros({2}, DType::i32)); },
       "InvalidArgument: cross_entropy: labels are i32 [2] but need to be i32 [3]"},
      {[&] { cross_entropy(x, y); }, "InvalidArgument: cross_entropy: labels[1] is 5 but needs to be in [0, 4)"},
      {[&] { cross_entropy(x, missing); }, "InvalidArgument: cross_entropy: labels[0] is -1 but needs to be in [0, 4)"},
      {[&] { cross_entropy(x, missing, {}, {.ignore_missing = true}); },
       "InvalidArgument: cross_entropy: every chosen row has label -1, the mean of no losses is undefined"},
      {[&] { cross_entropy(x, good, Tensor::from<int32_t>({3}, {1})); },
       "InvalidArgument: cross_entropy: rows[0] is 3 but needs to be in [0, 3)"},
      {[&] { cross_entropy(x, good, zeros({0}, DType::i32)); },
       "InvalidArgument: cross_entropy: no row is chosen, the mean of no losses is undefined"},
      {[&] { cross_entropy(x, good, zeros({1})); },
       "InvalidArgument: cross_entropy: rows are f32 [1] but need to be i32 of one dimension"},
      {[&] { cross_entropy(x, good, {}, {.class_weights = ones({3})}); },
       "InvalidArgument: cross_entropy: class weights are f32 [3] but need to be f32 [4]"},
      {[&] { cross_entropy(x, good, {}, {.class_weights = zeros({4})}); },
       "InvalidArgument: cross_entropy: the class weights of the chosen rows add up to 0 but need to be above 0"},
      {[&] { cross_entropy(x, good, {}, {.label_smoothing = 1}); },
       "InvalidArgument: cross_entropy: label_smoothing is 1 but needs to be in [0, 1)"},
      {[&] { nll_loss(x, good, {}, {.label_smoothing = 0.5}); },
       "InvalidArgument: nll_loss: label_smoothing is 0.5, but only cross_entropy has it"},
      {[&] { bce_with_logits(x, zeros({4, 3})); },
       "InvalidArgument: bce_with_logits: the input is f32 [3, 4] but the target is f32 [4, 3]"},
      {[&] { bce_with_logits(x, x, {.positive_weights = ones({3})}); },
       "InvalidArgument: bce_with_logits: positive weights are f32 [3] but need to be f32 of the last size of [3, 4]"},
      {[&] { bce_with_logits(x, nan, {.skip_nan = true}); },
       "InvalidArgument: bce_with_logits: there is no target (shape [3, 4]), the mean of no losses is undefined"},
      {[&] { mse_loss(zeros({0}), zeros({0})); },
       "InvalidArgument: mse_loss: there is no target (shape [0]), the mean of no losses is undefined"},
      {[&] { smooth_l1_loss(x, x, 0); }, "InvalidArgument: smooth_l1_loss: beta is 0 but needs to be above 0"},
      {[&] { l1_loss(cast(x, DType::i32), x); }, "Unsupported: l1_loss: dtype i32 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
