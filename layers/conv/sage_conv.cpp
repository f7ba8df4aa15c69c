#include "tessera/layers/conv/sage_conv.h"

#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/unary.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

SageConv::SageConv(int64_t in, int64_t out, Generator& generator, SageConvOptions given) : options(given) {
  check(given.aggregate != Reduce::mul, "sage_conv: reduce mul is not one of sum, mean, max and min");
  if (options.project) lin = Linear(in, in, generator);
  lin_l = Linear(in, out, generator, {.bias = options.bias});
  if (options.root_weight) lin_r = Linear(in, out, generator, {.bias = false});
}

Tensor SageConv::operator()(const Tensor& x_src, const Tensor& x_dst, const Graph& graph) const {
  check(x_src.ndim() == 2 && x_src.dim(0) == graph.num_src(), "sage_conv: x has shape {} but the graph has {} sources",
        x_src.shape(), graph.num_src());
  if (x_dst.defined())
    check(x_dst.ndim() == 2 && x_dst.dim(0) == graph.num_dst(),
          "sage_conv: x_dst has shape {} but the graph has {} destinations", x_dst.shape(), graph.num_dst());
  const Tensor sent = options.project ? relu(lin(x_src)) : x_src;
  const bool linear = options.aggregate == Reduce::sum || options.aggregate == Reduce::mean;
  Tensor out;
  if (linear && lin_l.weight.dim(0) < lin_l.weight.dim(1)) {
    out = spmm(graph, matmul(sent, lin_l.weight, {.transpose_b = true}), options.aggregate);
    if (lin_l.bias.defined()) out = add_bias(out, lin_l.bias);
  } else {
    out = lin_l(spmm(graph, sent, options.aggregate));
  }
  if (options.root_weight && x_dst.defined()) out = add(out, lin_r(x_dst));
  return options.normalize ? div(out, clamp(norm(out, Norm::l2, 1, true), 1e-12, 1e300)) : out;
}

}  // namespace tessera
