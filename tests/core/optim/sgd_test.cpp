#include "tessera/core/optim/sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

void square_step(Sgd& optimiser, const Tensor& w) {
  optimiser.clear_grad();
  backward(scale(sum(mul(w, w)), 0.5));
  optimiser.step();
}

TEST(Sgd, KnownSteps) {
  const auto run = [](Sgd::Options options, double decay, const std::vector<double>& expected) {
    const Restore restore;
    for (const Isa isa : isas()) {
      set_isa(isa);
      Tensor w = full({21}, 1, DType::f64).set_requires_grad();
      Sgd optimiser({{{w}, decay}}, options);
      for (const double value : expected) {
        square_step(optimiser, w);
        for (const double x : w.span<double>()) EXPECT_NEAR(x, value, 1e-12);
      }
    }
  };
  run({.lr = 0.1}, 0, {0.9, 0.81, 0.729});
  run({.lr = 0.1}, 0.5, {0.85, 0.7225});
  run({.lr = 0.1, .momentum = 0.9}, 0, {0.9, 0.72, 0.486, 0.2268});
  // b = 1; w = 1 - 0.1 (1 + 0.9); b = 0.9 + 0.81; w = 0.81 - 0.1 (0.81 + 0.9 * 1.71)
  run({.lr = 0.1, .momentum = 0.9, .nesterov = true}, 0, {0.81, 0.5751});
}

TEST(Sgd, ResumesExactly) {
  Tensor w = full({3}, 1).set_requires_grad();
  Sgd first(std::vector<Tensor>{w}, {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 2; ++i) square_step(first, w);
  StateDict saved;
  for (const auto& [name, tensor] : first.state()) saved[name] = clone(tensor);
  Tensor again = clone(w).set_requires_grad();
  for (int i = 0; i < 2; ++i) square_step(first, w);
  Sgd second(std::vector<Tensor>{again}, {.momentum = 0.9});
  second.load_state(saved);
  for (int i = 0; i < 2; ++i) square_step(second, again);
  EXPECT_TRUE(same_bits(w, again));
  EXPECT_EQ(second.steps(), 4);
  EXPECT_EQ(Sgd(std::vector<Tensor>{w}, {}).state().size(), 2u);
}

TEST(Sgd, SameBitsForEveryThreadCount) {
  const Restore restore;
  Tensor expected;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    Generator random(3);
    Tensor w = normal({50001}, random).set_requires_grad(), unused = ones({2}).set_requires_grad();
    Sgd optimiser(std::vector<Tensor>{unused, w}, {.lr = 0.1, .momentum = 0.5});
    for (int i = 0; i < 3; ++i) square_step(optimiser, w);
    if (n == 1) expected = clone(w);
    EXPECT_TRUE(same_bits(w, expected));
  }
}

TEST(Sgd, Errors) {
  const Tensor w = ones({1}).set_requires_grad(), plain = zeros({2}), half = zeros({2}, DType::f16).set_requires_grad();
  const auto make = [](Tensor parameter, Sgd::Options options, double decay = 0) {
    return [=] { Sgd({{{parameter}, decay}}, options); };
  };
  verify_errors({
      {make(plain, {}), "InvalidArgument: sgd: parameter 0 does not require a gradient"},
      {[&] { Sgd(std::vector<Tensor>{w, w}, {}); },
       "InvalidArgument: sgd: parameter 1 was given before, and would be updated twice"},
      {make(half, {}), "Unsupported: sgd: dtype f16 is not supported, use f32 or f64"},
      {make(w, {.lr = -1}), "InvalidArgument: sgd: lr is -1 but needs to be 0 or more"},
      {make(w, {.momentum = 1}), "InvalidArgument: sgd: momentum is 1 but needs to be in [0, 1)"},
      {make(w, {.nesterov = true}), "InvalidArgument: sgd: nesterov needs a momentum above 0"},
      {make(w, {}, -1), "InvalidArgument: sgd: weight_decay is -1 but needs to be 0 or more"},
      {[&] { Sgd(std::vector<Tensor>{w}, {.momentum = 0.5}).load_state({}); },
       "InvalidArgument: sgd: missing b.0 [1]; missing lr []; missing steps []"},
  });
}

}  // namespace
}  // namespace tessera::test
