// An op of one's own, with its own backward pass: x * sigmoid(x), checked against a difference quotient.

#include <cstdio>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"

using namespace tessera;

Tensor swish(const Tensor& x) {
  const Tensor s = sigmoid(x.detach());
  Tensor out = mul(x.detach(), s);
  record("swish", out, {x}, [x = Saved(x), s = Saved(s)](const Tensor& grad, Gradients& into) {
    // d/dx x s(x) = s + x s (1 - s)
    const Tensor rest = mul(x.get(), mul(s.get(), shift(neg(s.get()), 1)));
    into.add(0, mul(grad, add(s.get(), rest)));
  });
  return out;
}

int main() {
  Generator random(0);
  Tensor x = normal({1000}, random, DType::f64);
  x.set_requires_grad();
  backward(sum(swish(x)));

  const NoGrad off;
  const double h = 1e-6;
  const Tensor quotient = scale(sub(swish(shift(x, h)), swish(shift(x, -h))), 1 / (2 * h));
  std::printf("largest difference to a difference quotient: %.1e\n", norm(sub(x.grad(), quotient), Norm::inf).item());
}
