#include "tessera/core/optim/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

Tensor leaf(std::initializer_list<double> values, DType dtype = DType::f64) {
  Tensor x = cast(Tensor::from(values, {int64_t(values.size())}), dtype);
  x.set_requires_grad();
  return x;
}

/// A step on the loss sum(w^2) / 2, whose gradient is w.
void square_step(Adam& optimiser, const std::vector<Tensor>& parameters) {
  optimiser.clear_grad();
  for (const Tensor& w : parameters) backward(scale(sum(mul(w, w)), 0.5));
  optimiser.step();
}

/// One parameter through Adam by the book, in double.
struct Naive {
  double w, m = 0, v = 0;
  int t = 0;
  void step(double g, double lr, double decay, bool decoupled) {
    ++t;
    if (decoupled)
      w -= lr * decay * w;
    else
      g += decay * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

TEST(AdamState, FollowsTheFormula) {
  const Restore restore;
  for (const Isa isa : isas())
    for (const bool decoupled : {false, true})
      for (const double decay : {0.0, 0.1})
        for (const DType dtype : {DType::f32, DType::f64}) {
          set_isa(isa);
          const std::vector<double> start = {1, -2, 0.5, 3, 0.125, -0.25, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
          Tensor w = cast(Tensor::from(start, {int64_t(start.size())}), dtype);
          w.set_requires_grad();
          Adam optimiser({{{w}, decay}}, {.lr = 0.1, .decoupled = decoupled});
          std::vector<Naive> naive;
          for (const double x : start) naive.push_back({x});
          for (int step = 0; step < 5; ++step) {
            square_step(optimiser, {w});
            for (Naive& n : naive) n.step(n.w, 0.1, decay, decoupled);
          }
          for (size_t i = 0; i < start.size(); ++i)
            EXPECT_NEAR(cast(w, DType::f64).data<double>()[i], naive[i].w, (dtype == DType::f32 ? 1e-5 : 1e-13) * (1 + std::fabs(naive[i].w)));
        }
}

TEST(AdamState, KnownSteps) {
  Tensor w = leaf({1});
  Adam optimiser(std::vector<Tensor>{w}, {.lr = 0.1});
  for (const double expected : {0.9, 0.8004122, 0.7015863, 0.6039391}) {
    square_step(optimiser, {w});
    EXPECT_NEAR(w.detach().item(), expected, 1e-7);
  }
}

TEST(AdamState, ResumesExactly) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor a = leaf({1, -2, 3}, dtype), b = leaf({0.5}, dtype), c = leaf({1, -2, 3}, dtype), d = leaf({0.5}, dtype);
    Adam first({{{a}, 0.01}, {{b}}}, {.lr = 0.1});
    for (int i = 0; i < 2; ++i) square_step(first, {a, b});
    StateDict saved;
    for (const auto& [name, tensor] : first.state()) saved[name] = clone(tensor);
    const Tensor a2 = clone(a), b2 = clone(b);
    first.options().lr = 0.05;
    saved["lr"] = Tensor::from<double>({0.05}, Shape{});
    for (int i = 0; i < 2; ++i) square_step(first, {a, b});

    c = clone(a2).set_requires_grad();
    d = clone(b2).set_requires_grad();
    Adam second({{{c}, 0.01}, {{d}}}, {.lr = 7});
    second.load_state(saved);
    EXPECT_EQ(second.steps(), 2);
    for (int i = 0; i < 2; ++i) square_step(second, {c, d});
    EXPECT_TRUE(same_bits(a, c));
    EXPECT_TRUE(same_bits(b, d));
  }
}

TEST(AdamState, ABadStateChangesNothing) {
  Tensor a = leaf({1, 2});
  Adam optimiser(std::vector<Tensor>{a}, {});
  square_step(optimiser, {a});
  StateDict before;
  for (const auto& [name, tensor] : optimiser.state()) before[name] = clone(tensor);
  StateDict wrong = before;
  wrong["m.0"] = zeros({2}, DType::f64);
  wrong["v.0"] = zeros({3}, DType::f64);
  wrong["lr"] = Tensor::from<double>({9}, Shape{});
  StateDict more = before;
  more["v.1"] = zeros({1}, DType::f64);
  more.erase("m.0");
  verify_errors({
      {[&] { optimiser.load_state(wrong); }, "InvalidArgument: adam: v.0 is f64 [3] but needs to be f64 [2]"},
      {[&] { optimiser.load_state(more); }, "InvalidArgument: adam: missing m.0 [2]; unexpected v.1 [1]"},
  });
  for (const auto& [name, tensor] : optimiser.state()) EXPECT_TRUE(same_bits(tensor, before[name])) << name;
}

// Loading replaces the state, it does not append.
TEST(AdamState, LoadingAgainAndAgainKeepsMemoryFlat) {
  Tensor w = zeros({256, 256}).set_requires_grad();
  Adam optimiser(std::vector<Tensor>{w}, {});
  square_step(optimiser, {w});
  StateDict saved;
  for (const auto& [name, tensor] : optimiser.state()) saved[name] = clone(tensor);
  optimiser.load_state(saved);
  const int64_t used = memory_stats().used_bytes, asked = memory_stats().system_allocations;
  for (int i = 0; i < 100; ++i) optimiser.load_state(saved);
  EXPECT_EQ(memory_stats().used_bytes, used);
  EXPECT_LE(memory_stats().system_allocations, asked + 1);
}

TEST(AdamState, SameBitsForEveryThreadCountAndOddSizes) {
  const Restore restore;
  Tensor expected;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    Generator random(3);
    Tensor big = normal({40001}, random).set_requires_grad(), none = zeros({0}).set_requires_grad(),
           unused = ones({5}).set_requires_grad(), small = normal({3}, random).set_requires_grad();
    Adam optimiser(std::vector<Tensor>{none, big, unused, small}, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) square_step(optimiser, {big, small});
    EXPECT_TRUE(same_bits(unused, ones({5})));
    if (n == 1) expected = clone(big);
    EXPECT_TRUE(same_bits(big, expected));
  }
}

TEST(AdamState, Errors) {
  Tensor w = leaf({1}), plain = zeros({2}), half = zeros({2}, DType::f16).set_requires_grad();
  const auto make = [](Tensor parameter, Adam::Options options, double decay = 0) {
    return [=] { Adam({{{parameter}, decay}}, options); };
  };
  verify_errors({
      {make(plain, {}), "InvalidArgument: adam: parameter 0 does not require a gradient"},
      {make(half, {}), "Unsupported: adam: dtype f16 is not supported, use f32 or f64"},
      {make(w, {.lr = -1}), "InvalidArgument: adam: lr is -1 and eps 1e-08 but both need to be 0 or more"},
      {make(w, {.beta1 = 1}), "InvalidArgument: adam: beta1 is 1 and beta2 0.999 but both need to be in [0, 1)"},
      {make(w, {}, -1), "InvalidArgument: adam: weight_decay is -1 but needs to be 0 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
