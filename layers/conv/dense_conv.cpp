#include "tessera/layers/conv/dense_conv.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/layers/init.h"

namespace tessera {
namespace {

void check_shapes(const char* who, const Tensor& x, const Tensor& adj, const Tensor& mask) {
  check(x.ndim() == 3, "{}: x has shape {} but needs three dimensions", who, x.shape());
  check(adj.shape() == (Shape{x.dim(0), x.dim(1), x.dim(1)}), "{}: adj has shape {} but needs {}", who, adj.shape(),
        Shape{x.dim(0), x.dim(1), x.dim(1)});
  if (mask.defined())
    check(mask.shape() == (Shape{x.dim(0), x.dim(1)}), "{}: mask has shape {} but needs {}", who, mask.shape(),
          Shape{x.dim(0), x.dim(1)});
}

Tensor each(const Linear& linear, const Tensor& x) {
  const Tensor out = linear(reshape(x, Shape{x.dim(0) * x.dim(1), x.dim(2)}));
  return reshape(out, Shape{x.dim(0), x.dim(1), out.dim(1)});
}

Tensor masked(const Tensor& x, const Tensor& mask) {
  return mask.defined() ? mul(x, reshape(mask, Shape{x.dim(0), x.dim(1), 1})) : x;
}

/// The diagonals replaced by `value`.
Tensor with_diagonal(const Tensor& adj, double value) {
  const int64_t nodes = adj.dim(1);
  Tensor others = ones(Shape{nodes, nodes}, adj.dtype()), diagonal = zeros(Shape{nodes, nodes}, adj.dtype());
  with_float(adj.dtype(), "dense_gcn_conv", [&]<class T>() {
    for (int64_t i = 0; i < nodes; ++i) {
      others.mutable_data<T>()[i * (nodes + 1)] = 0;
      diagonal.mutable_data<T>()[i * (nodes + 1)] = T(value);
    }
  });
  return add(mul(adj, others), diagonal);
}

}  // namespace

DenseGcnConv::DenseGcnConv(int64_t in, int64_t out, Generator& generator, DenseGcnConvOptions given)
    : lin(in, out, generator, {.bias = false, .glorot = true}), options(given) {
  if (options.bias) bias = zero_parameter(Shape{out});
}

Tensor DenseGcnConv::operator()(const Tensor& x, const Tensor& adj, const Tensor& mask) const {
  check_shapes("dense_gcn_conv", x, adj, mask);
  const int64_t graphs = x.dim(0), nodes = x.dim(1);
  const Tensor weights = options.add_loop ? with_diagonal(adj, options.improved ? 2 : 1) : adj;
  const Tensor scale = pow(clamp(sum(weights, 2), 1, 1e300), -0.5);
  const Tensor column = reshape(scale, Shape{graphs, nodes, 1});
  Tensor out = mul(batched_matmul(weights, mul(each(lin, x), column)), column);
  if (bias.defined()) out = add(out, bias);
  return masked(out, mask);
}

DenseSageConv::DenseSageConv(int64_t in, int64_t out, Generator& generator, DenseSageConvOptions given)
    : lin_rel(in, out, generator, {.bias = false}), lin_root(in, out, generator, {.bias = given.bias}), options(given) {}

Tensor DenseSageConv::operator()(const Tensor& x, const Tensor& adj, const Tensor& mask) const {
  check_shapes("dense_sage_conv", x, adj, mask);
  const Tensor pulled = div(batched_matmul(adj, x), clamp(sum(adj, 2, true), 1, 1e300));
  Tensor out = add(each(lin_rel, pulled), each(lin_root, x));
  if (options.normalize) out = div(out, clamp(norm(out, Norm::l2, 2, true), 1e-12, 1e300));
  return masked(out, mask);
}

}  // namespace tessera
