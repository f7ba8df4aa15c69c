#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

// Bias and activation, and batches.
namespace tessera::test {
namespace {

Real activated(Activation activation, const Real& x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x > 0 ? x : Real(0);
    case Activation::elu: return x > 0 ? x : exp(x) - Real(1);
    case Activation::tanh: return tanh(x);
    case Activation::sigmoid: return Real(1) / (Real(1) + exp(-x));
  }
  return x;
}

void verify_fused(int64_t m, int64_t k, int64_t n, Activation activation, bool bias, bool transposed) {
  const double range = k > 1000 ? 0.05 : 1;  // a sigmoid of large sums is flat
  verify({.name = "matmul " + to_text(Shape{m, k, n}) + " activation " + std::to_string(int(activation)),
          .inputs = {real(transposed ? Shape{k, m} : Shape{m, k}, -range, range).saved(), real(transposed ? Shape{n, k} : Shape{k, n}).saved(),
                     bias ? real({n}) : real({n}).no_grad()},
          .call =
              [=](const Tensors& in) {
                return matmul(in[0], in[1],
                              {.transpose_a = transposed,
                               .transpose_b = transposed,
                               .bias = bias ? in[2] : Tensor(),
                               .activation = activation});
              },
          .reference =
              [=](const Arrays& in) {
                Array out(Shape{m, n});
                for (int64_t i = 0; i < m; ++i)
                  for (int64_t j = 0; j < n; ++j) {
                    for (int64_t l = 0; l < k; ++l)
                      out(i, j) += (transposed ? in[0](l, i) : in[0](i, l)) * (transposed ? in[1](j, l) : in[1](l, j));
                    if (bias) out(i, j) += in[2][j];
                    out(i, j) = activated(activation, out(i, j));
                  }
                return out;
              },
          .k = double(k) / 4 + 3,
          .grad_k = double(k + std::max(m, n)) / 4 + 6,
          .smooth = activation != Activation::relu && activation != Activation::elu && m * n < 200 && k < 1000,
          .saves_output = activation != Activation::none});
}

TEST(MatmulForms, BiasAndActivation) {
  for (const Activation activation :
       {Activation::none, Activation::relu, Activation::elu, Activation::tanh, Activation::sigmoid})
    for (const bool bias : {false, true})
      for (const bool transposed : {false, true}) {
        verify_fused(5, 7, 3, activation, bias, transposed);
        verify_fused(3, 0, 2, activation, bias, transposed);
        verify_fused(0, 3, 2, activation, bias, transposed);
        verify_fused(30, 24, 33, activation, bias, transposed);  // oneDNN
      }
  verify_fused(260, 5, 17, Activation::tanh, true, false);    // two tiles
  verify_fused(2, 4200, 3, Activation::sigmoid, true, false);  // K in pieces
}

void verify_batch(int64_t batch, int64_t m, int64_t k, int64_t n, bool large = false) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      Case c{.name = "batched_matmul " + to_text(Shape{batch, m, k, n}),
             .inputs = {real(ta ? Shape{batch, k, m} : Shape{batch, m, k}).saved(),
                        real(tb ? Shape{batch, n, k} : Shape{batch, k, n}).saved()},
             .call = [=](const Tensors& in) { return batched_matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb}); },
             .reference =
                 [=](const Arrays& in) {
                   Array out(Shape{batch, m, n});
                   for (int64_t b = 0; b < batch; ++b)
                     for (int64_t i = 0; i < m; ++i)
                       for (int64_t j = 0; j < n; ++j)
                         for (int64_t l = 0; l < k; ++l)
                           out(b, i, j) += (ta ? in[0](b, l, i) : in[0](b, i, l)) * (tb ? in[1](b, j, l) : in[1](b, l, j));
                   return out;
                 },
             .k = double(k) / 4 + 1,
             .grad_k = double(std::max(m, n)) / 4 + 1,
             .smooth = !large};
      if (large) c.reference = nullptr;
      verify(c);
    }
}

TEST(MatmulForms, Batches) {
  verify_batch(3, 4, 5, 2);
  verify_batch(1, 1, 1, 1);
  verify_batch(0, 2, 3, 4);
  verify_batch(2, 0, 3, 4);
  verify_batch(2, 3, 0, 4);
  for (const int64_t width : kWidths) verify_batch(2, 3, 4, width);
  verify_batch(3, 300, 30, 40, true);
}

TEST(MatmulForms, Errors) {
  const Tensor a = zeros({2, 3}), b = zeros({3, 4});
  verify_errors({
      {[&] { matmul(a, b, {.bias = zeros({3})}); }, "InvalidArgument: matmul: bias is f32 [3] but needs to be f32 [4]"},
      {[&] { matmul(a, b, {.bias = zeros({4}, DType::f64)}); },
       "InvalidArgument: matmul: bias is f64 [4] but needs to be f32 [4]"},
      {[&] { batched_matmul(a, b); },
       "InvalidArgument: batched_matmul: a has shape [2, 3] and b [3, 4] but need to be [B, M, K] and [B, K, N]"},
      {[&] { batched_matmul(zeros({2, 3, 4}), zeros({2, 3, 4})); },
       "InvalidArgument: batched_matmul: a has shape [2, 3, 4] and b [2, 3, 4], the inner sizes 4 and 3 differ"},
      {[&] { batched_matmul(zeros({2, 3, 4}, DType::i32), zeros({2, 4, 4}, DType::i32)); },
       "Unsupported: batched_matmul: dtype i32 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
