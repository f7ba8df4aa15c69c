#include "tessera/core/optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

Tensor with_gradient(std::vector<float> gradient) {
  const Shape shape{int64_t(gradient.size())};
  Tensor w = zeros(shape).set_requires_grad();
  backward(sum(mul(w, Tensor::from(gradient, shape))));
  return w;
}

TEST(Clip, NormOfAllTogether) {
  const Tensor a = with_gradient({3, 0}), b = with_gradient({0, 0, 4}), none = zeros({2}).set_requires_grad();
  const std::vector<Tensor> all = {a, none, b};
  EXPECT_EQ(clip_grad_norm(all, 5), 5);
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{3, 0}));
  EXPECT_EQ(clip_grad_norm(all, 2.5), 5);
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{1.5, 0}));
  EXPECT_EQ(b.grad().to_vector<float>(), (std::vector<float>{0, 0, 2}));
  EXPECT_FALSE(none.grad().defined());
  EXPECT_EQ(clip_grad_norm({}, 1), 0);
}

TEST(Clip, AnInfiniteNormLeavesTheGradients) {
  for (const float bad : {float(NAN), float(INFINITY)}) {
    const Tensor a = with_gradient({bad, 2});
    EXPECT_FALSE(std::isfinite(clip_grad_norm(std::vector<Tensor>{a}, 1)));
    EXPECT_EQ(a.grad().data<float>()[1], 2);
  }
}

TEST(Clip, Value) {
  const Tensor a = with_gradient({3, -4, 0.5, NAN});
  clip_grad_value(std::vector<Tensor>{a}, 1);
  EXPECT_EQ(a.grad().data<float>()[0], 1);
  EXPECT_EQ(a.grad().data<float>()[1], -1);
  EXPECT_EQ(a.grad().data<float>()[2], 0.5);
  EXPECT_TRUE(std::isnan(a.grad().data<float>()[3]));
}

TEST(Clip, Errors) {
  verify_errors({
      {[] { clip_grad_norm({}, -1); }, "InvalidArgument: clip_grad_norm: max_norm is -1 but needs to be 0 or more"},
      {[] { clip_grad_value({}, -1); }, "InvalidArgument: clip_grad_value: limit is -1 but needs to be 0 or more"},
  });
}

}  // namespace
}  // namespace tessera::test
