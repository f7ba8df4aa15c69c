// What a program outside this repository does first: a tensor, a loss, a gradient.

#include <cstdio>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"

int main() {
  using namespace tessera;
  Tensor x = Tensor::from({1.0f, -2.0f, 3.0f}, Shape{3});
  x.set_requires_grad();
  const Tensor loss = sum(mul(x, x));
  backward(loss);
  const float* gradient = x.grad().data<float>();
  std::printf("loss %g, gradient %g %g %g\n", loss.item(), double(gradient[0]), double(gradient[1]), double(gradient[2]));
  return loss.item() == 14 && gradient[0] == 2 && gradient[1] == -4 && gradient[2] == 6 ? 0 : 1;
}
