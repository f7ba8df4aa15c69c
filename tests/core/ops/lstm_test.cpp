#include "tessera/core/ops/lstm.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

Real sigmoid(const Real& x) { return Real(1) / (Real(1) + exp(-x)); }

Array reference(const Arrays& in, int biases, bool reverse) {
  const Array &x = in[0], &w = in[1], &u = in[2];
  const int64_t rows = x.dim(0), steps = x.dim(1), width = x.dim(2), hidden = u.dim(1);
  Array out(Shape{rows, steps, hidden});
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<Real> h(size_t(hidden), Real(0)), c = h;
    for (int64_t n = 0; n < steps; ++n) {
      const int64_t t = reverse ? steps - 1 - n : n;
      std::vector<Real> gates;
      for (int64_t j = 0; j < 4 * hidden; ++j) {
        Real gate(0);
        for (int b = 0; b < biases; ++b) gate += in[size_t(3 + b)][j];
        for (int64_t f = 0; f < width; ++f) gate += w(j, f) * x(r, t, f);
        for (int64_t k = 0; n > 0 && k < hidden; ++k) gate += u(j, k) * h[size_t(k)];
        gates.push_back(gate);
      }
      for (int64_t j = 0; j < hidden; ++j) {
        const auto gate = [&](int64_t which) { return gates[size_t(which * hidden + j)]; };
        Real state = sigmoid(gate(0)) * tanh(gate(2));
        if (n > 0) state += sigmoid(gate(1)) * c[size_t(j)];
        c[size_t(j)] = state;
        out(r, t, j) = sigmoid(gate(3)) * tanh(state);
      }
      for (int64_t j = 0; j < hidden; ++j) h[size_t(j)] = out(r, t, j);
    }
  }
  return out;
}

void verify_lstm(int64_t rows, int64_t steps, int64_t width, int64_t hidden, int biases, bool reverse) {
  std::vector<Input> inputs = {real({rows, steps, width}), real({4 * hidden, width}).saved(), real({4 * hidden, hidden}).saved()};
  for (int b = 0; b < biases; ++b) inputs.push_back(real({4 * hidden}));
  verify({.name = "lstm " + to_text(Shape{rows, steps, width, hidden}) + (reverse ? " reverse" : ""),
          .inputs = inputs,
          .call =
              [=](const Tensors& in) {
                LstmWeights weights{in[1], in[2]};
                if (biases > 0) weights.bias_ih = in[3];
                if (biases > 1) weights.bias_hh = in[4];
                return lstm(in[0], weights, reverse);
              },
          .reference = [=](const Arrays& in) { return reference(in, biases, reverse); },
          .k = 16,
          .grad_k = 64});
}

TEST(Lstm, Sequences) {
  for (const bool reverse : {false, true}) {
    for (const int biases : {0, 1, 2}) verify_lstm(3, 4, 2, 3, biases, reverse);
    verify_lstm(2, 1, 3, 2, 2, reverse);
    verify_lstm(1, 3, 1, 1, 2, reverse);
    verify_lstm(0, 3, 2, 2, 2, reverse);
    verify_lstm(2, 0, 2, 2, 2, reverse);
  }
  for (const int64_t hidden : {8, 17}) verify_lstm(5, 3, 4, hidden, 2, false);
}

TEST(Lstm, Errors) {
  const Tensor x = zeros({2, 3, 4}), w = zeros({8, 4}), u = zeros({8, 2});
  verify_errors({
      {[&] { lstm(zeros({2, 3}), {w, u}); }, "InvalidArgument: lstm: x has shape [2, 3] but needs to be [N, T, F]"},
      {[&] { lstm(x, {w, zeros({8, 3})}); }, "InvalidArgument: lstm: weight_hh is f32 [8, 3] but needs to be f32 [4 H, H]"},
      {[&] { lstm(x, {zeros({8, 5}), u}); }, "InvalidArgument: lstm: weight_ih is f32 [8, 5] but needs to be f32 [8, 4]"},
      {[&] { lstm(x, {w, u, zeros({2})}); }, "InvalidArgument: lstm: a bias is f32 [2] but needs to be f32 [8]"},
      {[&] { lstm(zeros({2, 3, 4}, DType::i32), {w, u}); },
       "Unsupported: lstm: dtype i32 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
