#include "tessera/core/optim/adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"
#include "tessera/tests/support/tolerance.h"

namespace tessera::test {
namespace {

/// The published algorithm, element by element in long double.
struct Reference {
  std::vector<long double> w, m, v;
  int steps = 0;

  explicit Reference(const Tensor& parameter) : m(size_t(parameter.numel())), v(m.size()) {
    const Tensor wide = cast(parameter.detach(), DType::f64);
    w.assign(wide.data<double>(), wide.data<double>() + wide.numel());
  }

  void step(const Tensor& grad, const Adam::Options& o, double decay) {
    ++steps;
    const Tensor g = cast(grad.detach(), DType::f64);
    for (size_t i = 0; i < w.size(); ++i) {
      const long double x = g.data<double>()[i] + decay * w[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * x;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * x * x;
      const long double mean = m[i] / (1 - std::pow((long double)(o.beta1), steps)),
                        square = v[i] / (1 - std::pow((long double)(o.beta2), steps));
      w[i] -= o.lr * mean / (std::sqrt(square) + o.eps);
    }
  }
};

void expect_near(const Tensor& parameter, const Reference& reference, double bound) {
  const Tensor wide = cast(parameter.detach(), DType::f64);
  for (int64_t i = 0; i < wide.numel(); ++i)
    ASSERT_LE(std::fabs(wide.data<double>()[i] - double(reference.w[size_t(i)])), bound) << i;
}

TEST(Adam, FollowsThePublishedAlgorithm) {
  const Restore restore;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const Isa isa : isas()) {
      set_isa(isa);
      const Adam::Options options{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6};
      Tensors w = make_inputs({real({3, 17}), real({40'000}), real({}), real({0, 4})}, dtype);
      std::vector<Reference> references;
      for (Tensor& x : w) {
        x.set_requires_grad();
        references.emplace_back(x);
      }
      Adam adam({{{w[0], w[1]}, 0.3}, {{w[2], w[3]}, 0}}, options);
      for (int step = 0; step < 5; ++step) {
        for (size_t i = 0; i < w.size(); ++i) {
          const Tensor seed = random_seed(w[i].shape(), dtype, uint64_t(step * 10) + i);
          backward(scale(w[i], 2), seed);
          references[i].step(w[i].grad(), options, i < 2 ? 0.3 : 0);
        }
        adam.step();
        adam.clear_grad();
      }
      EXPECT_EQ(adam.steps(), 5);
      // Each step moves an element by about lr; its relative error is a few roundings, larger where m cancels.
      for (size_t i = 0; i < w.size(); ++i) expect_near(w[i], references[i], 5 * 64 * unit_roundoff(dtype));
    }
}

TEST(Adam, FirstStepIsTheLearningRate) {
  Tensor w = Tensor::from<double>({1, 1, 1}, {3});
  w.set_requires_grad();
  Adam adam(std::vector<Tensor>{w}, {.lr = 0.1});
  backward(w, Tensor::from<double>({1e-3, -5, 0}, {3}));
  adam.step();
  EXPECT_NEAR(w.data<double>()[0], 0.9, 1e-5);
  EXPECT_NEAR(w.data<double>()[1], 1.1, 1e-5);
  EXPECT_EQ(w.data<double>()[2], 1);
}

TEST(Adam, SameBitsForEveryThreadCount) {
  const Restore restore;
  Tensors first;
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    Tensors w = make_inputs({real({100'003}), real({5}), real({300, 70})}, DType::f32);
    for (Tensor& x : w) x.set_requires_grad();
    Adam adam(w, {.lr = 0.01});
    for (int step = 0; step < 3; ++step) {
      for (Tensor& x : w) backward(sum(mul(x, x)));
      adam.step();
    }
    if (n == 1) first = w;
    for (size_t i = 0; i < w.size(); ++i) EXPECT_TRUE(same_bits(w[i], first[i])) << n << " " << i;
  }
}

TEST(Adam, ParametersWithoutAGradientAreLeftAlone) {
  Tensor a = ones({3}), b = ones({3});
  a.set_requires_grad();
  b.set_requires_grad();
  Adam adam({{{a, b}, 0.5}}, {});
  backward(sum(a));
  const uint64_t version = b.version();
  adam.step();
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(b.version(), version);
  EXPECT_NE(a.data<float>()[0], 1);
  adam.clear_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(Adam, AStepCountsAsAChange) {
  Tensor w = ones({2}), x = ones({2});
  w.set_requires_grad();
  x.set_requires_grad();
  Adam adam(std::vector<Tensor>{w}, {});
  const Tensor loss = sum(mul(w, x));
  backward(sum(w));
  adam.step();
  EXPECT_EQ(error_of([&] { backward(loss); }),
            "InvalidArgument: backward: a tensor of shape [2] was changed in place after it was saved for the gradient");
}

TEST(Adam, Errors) {
  Tensor w = ones({2}), plain = ones({2}), half = ones({2}, DType::f16);
  w.set_requires_grad();
  half.set_requires_grad();
  using Group = std::vector<Tensor>;
  verify_errors({
      {[&] { Adam(Group{w}, {.lr = -1}); }, "InvalidArgument: adam: lr is -1 and eps 1e-08 but both need to be 0 or more"},
      {[&] { Adam(Group{w}, {.eps = -1}); }, "InvalidArgument: adam: lr is 0.001 and eps -1 but both need to be 0 or more"},
      {[&] { Adam(Group{w}, {.beta1 = 1}); },
       "InvalidArgument: adam: beta1 is 1 and beta2 0.999 but both need to be in [0, 1)"},
      {[&] { Adam(Group{w}, {.beta2 = -0.5}); },
       "InvalidArgument: adam: beta1 is 0.9 and beta2 -0.5 but both need to be in [0, 1)"},
      {[&] {
         Adam({{{w}, -1}}, {});
       },
       "InvalidArgument: adam: weight_decay is -1 but needs to be 0 or more"},
      {[&] {
         Adam(Group{w, plain}, {});
       },
       "InvalidArgument: adam: parameter 1 does not require a gradient"},
      {[&] { Adam(Group{Tensor()}, {}); }, "InvalidArgument: adam: parameter 0 does not require a gradient"},
      {[&] { Adam(Group{half}, {}); }, "Unsupported: adam: dtype f16 is not supported, use f32 or f64"},
      {[&] {
         Adam({{{w}, 0}, {{w}, 0.1}}, {});
       },
       "InvalidArgument: adam: parameter 1 was given before, and would be updated twice"},
  });
}

}  // namespace
}  // namespace tessera::test
