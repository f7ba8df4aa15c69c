#include "tessera/core/autograd.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

Tensor leaf(std::vector<double> values) {
  Tensor x = Tensor::from(values, {int64_t(values.size())});
  return x.set_requires_grad();
}

std::vector<double> grad_of(const Tensor& x) { return x.grad().to_vector<double>(); }

using Doubles = std::vector<double>;

TEST(Autograd, FanOutSums) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor a = scale(x, 2);
  // y = a * a + a, x reaches it by three paths of different length.
  backward(sum(add(mul(a, a), a)));
  EXPECT_EQ(grad_of(x), (Doubles{2 + 8 * 1, 2 + 8 * 2, 2 + 8 * 3}));
}

TEST(Autograd, LeafUsedTwice) {
  const Tensor x = leaf({1, 2});
  backward(sum(add(x, x)));
  EXPECT_EQ(grad_of(x), (Doubles{2, 2}));
  x.grad();
  const Tensor y = leaf({3, 4});
  backward(sum(mul(y, y)));
  EXPECT_EQ(grad_of(y), (Doubles{6, 8}));
}

// Diamonds in a row: 2^60 paths, but one visit of each op.
TEST(Autograd, DiamondsAreWalkedOnce) {
  const Tensor x = leaf({1});
  int visits = 0;
  Tensor y = x;
  for (int i = 0; i < 60; ++i) {
    Tensor both = add(y, y);
    Tensor out = both.detach();
    record("count", out, {both}, [&visits](const Tensor& grad, Gradients& into) {
      ++visits;
      into.add(0, grad);
    });
    y = out;
  }
  backward(y);
  EXPECT_EQ(visits, 60);
  EXPECT_EQ(grad_of(x), (Doubles{0x1p60}));
}

TEST(Autograd, SeedGradient) {
  const Tensor x = leaf({1, 2, 3});
  Tensor seed = Tensor::from<double>({1, 10, 100}, {3});
  backward(scale(x, 3), seed);
  EXPECT_EQ(grad_of(x), (Doubles{3, 30, 300}));
  EXPECT_EQ(seed.to_vector<double>(), (Doubles{1, 10, 100}));
}

TEST(Autograd, LossWithoutSeedHasOneElementOfAnyShape) {
  const Tensor x = leaf({5});
  backward(scale(x, 3));
  EXPECT_EQ(grad_of(x), (Doubles{3}));
}

TEST(Autograd, TheLossItselfMayBeALeaf) {
  const Tensor x = leaf({1, 2});
  const Tensor seed = Tensor::from<double>({4, 5}, {2});
  backward(x, seed);
  backward(x, seed);
  EXPECT_EQ(grad_of(x), (Doubles{8, 10}));
  EXPECT_EQ(seed.to_vector<double>(), (Doubles{4, 5}));
}

TEST(Autograd, GradientsAccumulateUntilCleared) {
  Tensor x = leaf({1, 2});
  backward(sum(scale(x, 2)));
  const Tensor first = x.grad();
  backward(sum(scale(x, 3)));
  EXPECT_EQ(grad_of(x), (Doubles{5, 5}));
  EXPECT_EQ(first.to_vector<double>(), (Doubles{2, 2}));  // a handle that was read keeps its value
  x.clear_grad();
  EXPECT_FALSE(x.grad().defined());
  backward(sum(x));
  EXPECT_EQ(grad_of(x), (Doubles{1, 1}));
}

TEST(Autograd, UnusedBranchesAndConstantsGetNothing) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  const Tensor constant = Tensor::from<double>({5, 6}, {2});
  const Tensor unused = mul(y, y);
  backward(sum(mul(x, constant)));
  EXPECT_EQ(grad_of(x), (Doubles{5, 6}));
  EXPECT_FALSE(y.grad().defined());
  EXPECT_FALSE(constant.grad().defined());
  EXPECT_FALSE(unused.grad().defined());
}

TEST(Autograd, DetachCutsTheGraph) {
  const Tensor x = leaf({3});
  backward(mul(x, x.detach()));
  EXPECT_EQ(grad_of(x), (Doubles{3}));
  EXPECT_FALSE(scale(x.detach(), 2).requires_grad());
}

TEST(Autograd, NoGradIsScopedAndPerThread) {
  const Tensor x = leaf({1});
  {
    const NoGrad off;
    EXPECT_FALSE(scale(x, 2).requires_grad());
    { const NoGrad inner; }
    EXPECT_FALSE(scale(x, 2).requires_grad());
    bool other = false;
    std::thread([&] { other = scale(x, 2).requires_grad(); }).join();
    EXPECT_TRUE(other);
  }
  EXPECT_TRUE(scale(x, 2).requires_grad());
  try {
    const NoGrad off;
    throw std::runtime_error("leaves the scope");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(scale(x, 2).requires_grad());
}

TEST(Autograd, NothingIsRecordedForConstants) {
  const Tensor x = Tensor::from<double>({1}, {1});
  const Tensor y = scale(x, 2);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(error_of([&] { backward(y); }),
            "InvalidArgument: backward: the loss does not depend on a tensor that requires a gradient");
}

TEST(Autograd, DeepChainsDoNotUseTheStack) {
  const Tensor x = leaf({1});
  for (const bool walk : {true, false}) {
    Tensor y = x;
    for (int i = 0; i < 200'000; ++i) y = scale(y, 1);
    if (walk) {
      backward(y);
      EXPECT_EQ(grad_of(x), (Doubles{1}));
    }
    y = Tensor();  // frees the chain, walked or not
  }
}

// A closure that keeps the tensor itself, history and all, must not bring the recursion back.
TEST(Autograd, DeepChainsOfClosuresThatKeepHistory) {
  const Tensor x = leaf({1});
  for (const bool as_input : {true, false}) {
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) {
      Tensor out = y.detach();
      record("keep", out, {as_input ? y : x}, [y](const Tensor& grad, Gradients& into) { into.add(0, grad); });
      y = out;
    }
    y = Tensor();
  }
}

TEST(Autograd, ClosuresAreFreedAsTheyRun) {
  const Tensor x = leaf({1, 2});
  auto token = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = token;
  Tensor y = x.detach();
  bool alive_later = true;
  record("first", y, {x}, [&](const Tensor& grad, Gradients& into) {
    alive_later = !watch.expired();
    into.add(0, grad);
  });
  Tensor z = y.detach();
  record("second", z, {y}, [token = std::move(token)](const Tensor& grad, Gradients& into) { into.add(0, grad); });
  const Tensor loss = sum(z);
  EXPECT_FALSE(watch.expired());
  backward(loss);
  EXPECT_FALSE(alive_later);  // what the later op saved is gone when the earlier one runs
}

TEST(Autograd, SavedMemoryIsFreedByBackward) {
  const Tensor x = leaf(Doubles(1000, 1.0));
  const int64_t before = memory_stats().used_bytes;
  const Tensor loss = sum(mul(scale(x, 2), scale(x, 3)));
  EXPECT_GE(memory_stats().used_bytes, before + 2 * 8000);
  backward(loss);
  EXPECT_LT(memory_stats().used_bytes, before + 2 * 8000);  // the gradient and the loss remain
}

TEST(Autograd, AUsedGraphIsRefused) {
  const Tensor x = leaf({1, 2});
  const Tensor y = mul(x, x), loss = sum(y), other = mean(y);
  backward(loss);
  EXPECT_EQ(error_of([&] { backward(loss); }),
            "InvalidArgument: backward: the graph at 'sum' was already used and freed; compute the loss again");
  EXPECT_EQ(error_of([&] { backward(other); }),
            "InvalidArgument: backward: the graph at 'mul' was already used and freed; compute the loss again");
  EXPECT_EQ(grad_of(x), (Doubles{2, 4}));
  backward(sum(mul(x, x)));
  EXPECT_EQ(grad_of(x), (Doubles{4, 8}));
}

TEST(Autograd, SeveralLossesOfSeparateGraphs) {
  const Tensor x = leaf({1, 2});
  const Tensor a = sum(mul(x, x)), b = sum(scale(x, 5));
  backward(b);
  backward(a);
  EXPECT_EQ(grad_of(x), (Doubles{7, 9}));
}

// H17, with the change made through each kind of view.
TEST(Autograd, ChangeOfASavedTensorThroughAViewIsRefused) {
  const std::string refused =
      "InvalidArgument: backward: a tensor of shape [2, 2] was changed in place after it was saved for the gradient";
  for (int kind = 0; kind < 5; ++kind) {
    Tensor x = Tensor::from<double>({1, 2, 3, 4}, {2, 2});
    Tensor w = Tensor::from<double>({1, 0, 0, 1}, {2, 2});
    w.set_requires_grad();
    const Tensor loss = sum(mul(x, w));
    Tensor view = kind == 0 ? x : kind == 1 ? x.view_rows(0, 1) : kind == 2 ? x.view_as({4}) : x.detach();
    if (kind == 4) {  // a reader is no writer
      EXPECT_EQ(view.data<double>()[0], 1);
      backward(loss);
      EXPECT_EQ(grad_of(w), (Doubles{1, 2, 3, 4}));
      continue;
    }
    view.mutable_data<double>()[0] += 10;
    EXPECT_EQ(error_of([&] { backward(loss); }), refused) << kind;
    EXPECT_FALSE(w.grad().defined());
  }
}

TEST(Autograd, InPlaceAdditionCountsAsAChange) {
  Tensor x = Tensor::from<double>({1, 2}, {2});
  const Tensor w = leaf({3, 4});
  const Tensor loss = sum(mul(x, w));
  add_in_place(x, x);
  EXPECT_EQ(error_of([&] { backward(loss); }),
            "InvalidArgument: backward: a tensor of shape [2] was changed in place after it was saved for the gradient");
}

TEST(Autograd, ChangeAfterBackwardIsFine) {
  Tensor x = Tensor::from<double>({1, 2}, {2});
  const Tensor w = leaf({3, 4});
  backward(sum(mul(x, w)));
  x.mutable_data<double>()[0] = 100;
  EXPECT_EQ(grad_of(w), (Doubles{1, 2}));
}

TEST(Autograd, SecondDerivativesAreRefusedBothWays) {
  const Tensor x = leaf({2, 3});
  const Tensor loss = sum(mul(x, mul(x, x)));
  EXPECT_EQ(error_of([&] { backward(loss, {}, {.create_graph = true}); }),
            "Unsupported: backward: create_graph asks for a second derivative, which is not supported");
  backward(loss);  // the refusal did not use the graph up
  EXPECT_EQ(grad_of(x), (Doubles{12, 27}));
  const auto refused = [](const char* op) {
    return std::string("InvalidArgument: ") + op +
           ": an input was made from a gradient, and second derivatives are not supported; detach() it if it is a constant";
  };
  EXPECT_EQ(error_of([&] { mul(x.grad(), x); }), refused("mul"));
  EXPECT_EQ(error_of([&] { add(x, scale(x.grad(), 2)); }), refused("add"));
  EXPECT_EQ(error_of([&] { mul(x, scale(add(x.grad(), x.grad()), 0.5)); }), refused("mul"));
  EXPECT_EQ(error_of([&] { mul(x, x.grad().view_as({2})); }), refused("mul"));
  EXPECT_EQ(error_of([&] { mul(x, x.grad().view_rows(0, 2)); }), refused("mul"));
  EXPECT_EQ(error_of([&] { mul(x, clone(x.grad())); }), refused("mul"));
  EXPECT_EQ(error_of([&] { mul(x, cast(cast(x.grad(), DType::f32), DType::f64)); }), refused("mul"));
  // As a constant, or where nothing is differentiated, a gradient is a tensor like any other.
  EXPECT_EQ(mul(x, x.grad().detach()).to_vector<double>(), (Doubles{24, 81}));
  EXPECT_EQ(sum(mul(x.grad(), x.grad())).item(), 144 + 729);
  const NoGrad off;
  EXPECT_EQ(mul(x, x.grad()).to_vector<double>(), (Doubles{24, 81}));
}

TEST(Autograd, GradientsThatAccumulatedAreStillRefused) {
  const Tensor x = leaf({2, 3});
  for (int pass = 0; pass < 3; ++pass) {
    backward(sum(mul(x, x)));
    EXPECT_NE(error_of([&] { mul(x.grad(), x); }), "no error") << pass;
  }
  const Tensor y = leaf({1});
  backward(y);
  EXPECT_NE(error_of([&] { mul(y.grad(), y); }), "no error");
}

TEST(Autograd, AnExceptionInAClosureLeavesTheStateUsable) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4});
  bool broken = true;
  const auto build = [&] {
    Tensor a = scale(x, 2), b = scale(y, 3);
    Tensor c = add(a, b);
    Tensor out = c.detach();
    record("sometimes", out, {c, a}, [&](const Tensor& grad, Gradients& into) {
      into.add(0, grad);
      into.add(1, grad);
      if (broken) throw std::runtime_error("broken closure");
    });
    return sum(out);
  };
  const Tensor loss = build();
  EXPECT_NE(error_of([&] { backward(loss); }).find("broken closure"), std::string::npos);
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(y.grad().defined());
  EXPECT_TRUE(scale(x, 2).requires_grad());  // recording is on again
  EXPECT_EQ(error_of([&] { backward(loss); }),
            "InvalidArgument: backward: the graph at 'sum' was already used and freed; compute the loss again");
  broken = false;
  backward(build());
  EXPECT_EQ(grad_of(x), (Doubles{4, 4}));
  EXPECT_EQ(grad_of(y), (Doubles{3, 3}));
}

// Two losses share a part that the first, failed, pass had given gradients to but not run.
TEST(Autograd, AnAbandonedPassLeavesNoGradientBehind) {
  const Tensor x = leaf({1, 2});
  const Tensor shared = scale(x, 2);
  const Tensor good = sum(shared);
  Tensor bad = shared.detach();
  record("bad", bad, {shared, shared}, [](const Tensor& grad, Gradients& into) {
    into.add(0, grad);
    throw std::runtime_error("broken closure");
  });
  EXPECT_NE(error_of([&] { backward(bad, ones({2}, DType::f64)); }), "no error");
  backward(good);
  EXPECT_EQ(grad_of(x), (Doubles{2, 2}));
}

TEST(Autograd, WrongGradientsOfAnOpAreInternalErrors) {
  const Tensor x = leaf({1, 2});
  Tensor out = x.detach(), other = x.detach();
  record("op", out, {x}, [](const Tensor&, Gradients& into) { into.add(0, ones({3}, DType::f64)); });
  EXPECT_EQ(error_of([&] { backward(out, ones({2}, DType::f64)); }),
            "InternalError: op: gradient of input 0 is f64 [3] but the input is f64 [2]");
  record("op", other, {x}, [](const Tensor&, Gradients& into) { into.add(0, ones({2}, DType::f32)); });
  EXPECT_EQ(error_of([&] { backward(other, ones({2}, DType::f64)); }),
            "InternalError: op: gradient of input 0 is f32 [2] but the input is f64 [2]");
  Tensor many = x.detach();
  EXPECT_EQ(error_of([&] {
              record("op", many, {x, x, x, x, x, x, x, x, x}, [](const Tensor&, Gradients&) {});
            }),
            "InternalError: op: 9 inputs recorded but at most 8 are possible");
}

TEST(Autograd, WantsTellsWhichInputsNeedAGradient) {
  const Tensor x = leaf({1}), constant = Tensor::from<double>({1}, {1});
  Tensor out = x.detach();
  std::vector<bool> wants;
  record("op", out, {constant, x, Tensor(), scale(x, 2)}, [&](const Tensor& grad, Gradients& into) {
    for (int i = 0; i < 4; ++i) wants.push_back(into.wants(i));
    into.add(0, ones({77}));  // not wanted: ignored, whatever it is
    into.add(1, grad);
    into.add(3, grad);
  });
  backward(out);
  EXPECT_EQ(wants, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(grad_of(x), (Doubles{3}));
}

TEST(Autograd, Errors) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = scale(x, 2);
  verify_errors({
      {[] { backward(Tensor()); },
       "InvalidArgument: backward: the loss does not depend on a tensor that requires a gradient"},
      {[&] { backward(y); }, "InvalidArgument: backward: the loss has shape [3] but needs one element, or a seed gradient"},
      {[&] { backward(y, ones({2}, DType::f64)); },
       "InvalidArgument: backward: the seed is f64 [2] but the loss is f64 [3]"},
      {[&] { backward(y, ones({3}, DType::f32)); },
       "InvalidArgument: backward: the seed is f32 [3] but the loss is f64 [3]"},
  });
  backward(y, ones({3}, DType::f64));  // none of them used the graph up
  EXPECT_EQ(grad_of(x), (Doubles{2, 2, 2}));
}

TEST(Autograd, SeparateGraphsOnSeparateThreads) {
  std::vector<std::thread> threads;
  std::vector<double> results(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &results] {
      for (int pass = 0; pass < 50; ++pass) {
        const Tensor x = leaf({double(t), 1});
        Tensor y = x;
        for (int i = 0; i < 30; ++i) y = add(mul(y, x), x);
        y = Tensor();
        backward(sum(mul(x, x)));
        results[size_t(t)] += grad_of(x)[0];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, (Doubles{0, 100, 200, 300}));
}

}  // namespace
}  // namespace tessera::test
