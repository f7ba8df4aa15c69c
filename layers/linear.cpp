#include "tessera/layers/linear.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/layers/init.h"

namespace tessera {

Linear::Linear(int64_t in, int64_t out, Generator& generator, LinearOptions options) {
  weight = options.glorot ? glorot(Shape{out, in}, generator) : uniform_fan_in(Shape{out, in}, in, generator);
  if (options.bias) bias = uniform_fan_in(Shape{out}, in, generator);
}

Tensor Linear::operator()(const Tensor& x) const {
  check(x.ndim() == 2 && x.dim(1) == weight.dim(1), "linear: x has shape {} but needs to be [N, {}]", x.shape(),
        weight.dim(1));
  return matmul(x, weight, {.transpose_b = true, .bias = bias});
}

Tensor Linear::operator()(const SparseMatrix& x) const {
  check(x.columns() == weight.dim(1), "linear: x has {} columns but needs {}", x.columns(), weight.dim(1));
  const Tensor out = matmul(x, transpose(weight));
  return bias.defined() ? add_bias(out, bias) : out;
}

}  // namespace tessera
