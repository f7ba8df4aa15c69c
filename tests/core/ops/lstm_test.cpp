#include "tessera/core/ops/lstm.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/unary.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

Real sigmoid(const Real& x) { return Real(1) / (Real(1) + exp(-x)); }

struct Sequence {
  Array out, last_c;
};

/// `initial` adds h and c as the last two inputs.
Sequence reference(const Arrays& in, int biases, bool reverse, bool initial = false) {
  const Array &x = in[0], &w = in[1], &u = in[2];
  const int64_t rows = x.dim(0), steps = x.dim(1), width = x.dim(2), hidden = u.dim(1);
  Array out(Shape{rows, steps, hidden}), last_c(Shape{rows, hidden});
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<Real> h(size_t(hidden), Real(0)), c = h;
    for (int64_t j = 0; initial && j < hidden; ++j) {
      h[size_t(j)] = in[in.size() - 2](r, j);
      c[size_t(j)] = in[in.size() - 1](r, j);
    }
    for (int64_t n = 0; n < steps; ++n) {
      const int64_t t = reverse ? steps - 1 - n : n;
      std::vector<Real> gates;
      for (int64_t j = 0; j < 4 * hidden; ++j) {
        Real gate(0);
        for (int b = 0; b < biases; ++b) gate += in[size_t(3 + b)][j];
        for (int64_t f = 0; f < width; ++f) gate += w(j, f) * x(r, t, f);
        for (int64_t k = 0; (initial || n > 0) && k < hidden; ++k) gate += u(j, k) * h[size_t(k)];
        gates.push_back(gate);
      }
      for (int64_t j = 0; j < hidden; ++j) {
        const auto gate = [&](int64_t which) { return gates[size_t(which * hidden + j)]; };
        Real state = sigmoid(gate(0)) * tanh(gate(2));
        if (initial || n > 0) state += sigmoid(gate(1)) * c[size_t(j)];
        c[size_t(j)] = state;
        out(r, t, j) = sigmoid(gate(3)) * tanh(state);
      }
      for (int64_t j = 0; j < hidden; ++j) h[size_t(j)] = out(r, t, j);
    }
    for (int64_t j = 0; j < hidden; ++j) last_c(r, j) = c[size_t(j)];
  }
  return {out, last_c};
}

void verify_lstm(int64_t rows, int64_t steps, int64_t width, int64_t hidden, int biases, bool reverse) {
  std::vector<Input> inputs = {real({rows, steps, width}), real({4 * hidden, width}).saved(),
                               real({4 * hidden, hidden}).saved()};
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
          .reference = [=](const Arrays& in) { return reference(in, biases, reverse).out; },
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

// out, the last h and the last c side by side, from an initial state; gradients reach the state through all of them.
TEST(Lstm, StateInAndOut) {
  for (const bool reverse : {false, true})
    for (const int64_t steps : {0, 1, 4}) {
      const int64_t rows = 3, hidden = 2;
      const Shape state{rows, hidden};
      const Input part = steps > 0 ? real(state).saved() : real(state);
      verify({.name = "lstm with state, " + std::to_string(steps) + " steps" + (reverse ? " reverse" : ""),
              .inputs = {real({rows, steps, 3}), real({4 * hidden, 3}).saved(), real({4 * hidden, hidden}).saved(),
                         real({4 * hidden}), part, part},
              .call =
                  [=](const Tensors& in) {
                    const LstmResult r = lstm(in[0], {in[1], in[2], in[3]}, LstmState{in[4], in[5]}, reverse);
                    return concat({r.out, reshape(r.last.h, {rows, 1, hidden}), reshape(r.last.c, {rows, 1, hidden})}, 1);
                  },
              .reference =
                  [=](const Arrays& in) {
                    const Sequence s = reference(in, 1, reverse, true);
                    Array all(Shape{rows, steps + 2, hidden});
                    for (int64_t r = 0; r < rows; ++r)
                      for (int64_t j = 0; j < hidden; ++j) {
                        for (int64_t t = 0; t < steps; ++t) all(r, t, j) = s.out(r, t, j);
                        all(r, steps, j) = steps == 0 ? in[4](r, j) : s.out(r, reverse ? 0 : steps - 1, j);
                        all(r, steps + 1, j) = s.last_c(r, j);
                      }
                    return all;
                  },
              .k = 16,
              .grad_k = 64});
    }
}

TEST(Lstm, StateCarriesASequenceOn) {
  Generator random(5);
  const Tensor x = uniform({2, 6, 3}, -1, 1, random), w = uniform({8, 3}, -1, 1, random), u = uniform({8, 2}, -1, 1, random);
  const LstmResult whole = lstm(x, {w, u}, LstmState{}), first = lstm(slice(x, 1, 0, 4), {w, u}, LstmState{}),
                   second = lstm(slice(x, 1, 4, 6), {w, u}, first.last);
  EXPECT_TRUE(same_bits(whole.out, lstm(x, {w, u})));
  const auto near = [](const Tensor& a, const Tensor& b) { return max(abs(sub(a, b))).item() < 1e-6; };
  EXPECT_TRUE(near(whole.out, concat({first.out, second.out}, 1)));
  EXPECT_TRUE(near(whole.last.h, second.last.h));
  EXPECT_TRUE(near(whole.last.c, second.last.c));
  const LstmResult only_h = lstm(x, {w, u}, LstmState{.h = zeros({2, 2})});
  EXPECT_TRUE(same_bits(whole.out, only_h.out));
}

TEST(Lstm, Errors) {
  const Tensor x = zeros({2, 3, 4}), w = zeros({8, 4}), u = zeros({8, 2});
  verify_errors({
      {[&] {
         lstm(zeros({2, 3}), {w, u});
       },
       "InvalidArgument: lstm: x has shape [2, 3] but needs to be [N, T, F]"},
      {[&] {
         lstm(x, {w, zeros({8, 3})});
       },
       "InvalidArgument: lstm: weight_hh is f32 [8, 3] but needs to be f32 [4 H, H]"},
      {[&] {
         lstm(x, {zeros({8, 5}), u});
       },
       "InvalidArgument: lstm: weight_ih is f32 [8, 5] but needs to be f32 [8, 4]"},
      {[&] {
         lstm(x, {w, u, zeros({2})});
       },
       "InvalidArgument: lstm: a bias is f32 [2] but needs to be f32 [8]"},
      {[&] {
         lstm(x, {w, u}, LstmState{.h = zeros({2, 3})});
       },
       "InvalidArgument: lstm: the initial h is f32 [2, 3] but needs to be f32 [2, 2]"},
      {[&] {
         lstm(x, {w, u}, LstmState{.c = zeros({2, 2}, DType::f64)});
       },
       "InvalidArgument: lstm: the initial c is f64 [2, 2] but needs to be f32 [2, 2]"},
      {[&] {
         lstm(zeros({2, 3, 4}, DType::i32), {w, u});
       },
       "Unsupported: lstm: dtype i32 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
