#include "tessera/core/ops/activation.h"

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/unary.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Activation, IsTheFunctionOfItsName) {
  const std::pair<Activation, Tensor (*)(const Tensor&)> all[] = {
      {Activation::none, [](const Tensor& x) { return x; }},
      {Activation::relu, [](const Tensor& x) { return relu(x); }},
      {Activation::elu, [](const Tensor& x) { return elu(x); }},
      {Activation::tanh, [](const Tensor& x) { return tanh(x); }},
      {Activation::sigmoid, [](const Tensor& x) { return sigmoid(x); }}};
  Generator random(1);
  const Tensor values = uniform({5, 7}, -2, 2, random);
  for (const auto& [activation, function] : all) {
    Tensor a = clone(values).set_requires_grad(), b = clone(values).set_requires_grad();
    const Tensor x = activate(a, activation), y = function(b);
    EXPECT_TRUE(same_bits(x.detach(), y.detach())) << int(activation);
    backward(sum(x));
    backward(sum(y));
    EXPECT_TRUE(same_bits(a.grad(), b.grad())) << int(activation);
  }
}

}  // namespace
}  // namespace tessera::test
