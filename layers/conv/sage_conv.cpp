#include "tessera/layers/conv/sage_conv.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/unary.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

bool is_linear(Reduce reduce) { return reduce == Reduce::sum || reduce == Reduce::mean; }

/// Of what lin_l's matrix has been through already.
Tensor aggregate(const SageConv& conv, const Tensor& sent, const Graph& graph) {
  const Tensor out = spmm(graph, sent, conv.options.aggregate);
  return conv.lin_l.bias.defined() ? add_bias(out, conv.lin_l.bias) : out;
}

Tensor neighbours(const SageConv& conv, const Tensor& sent, const Graph& graph) {
  const Tensor& weight = conv.lin_l.weight;
  if (is_linear(conv.options.aggregate) && weight.dim(0) < weight.dim(1))
    return aggregate(conv, matmul(sent, weight, {.transpose_b = true}), graph);
  return conv.lin_l(spmm(graph, sent, conv.options.aggregate));
}

Tensor finish(const SageConv& conv, Tensor out, const Tensor& root) {
  if (root.defined()) out = add(out, root);
  return conv.options.normalize ? div(out, clamp(norm(out, Norm::l2, 1, true), 1e-12, 1e300)) : out;
}

}  // namespace

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
  const Tensor out = neighbours(*this, options.project ? relu(lin(x_src)) : x_src, graph);
  return finish(*this, out, options.root_weight && x_dst.defined() ? lin_r(x_dst) : Tensor());
}

Tensor SageConv::operator()(const SparseMatrix& x, const Graph& graph) const {
  check(x.rows() == graph.num_src() && graph.num_src() == graph.num_dst(),
        "sage_conv: x has {} rows but the graph has {} sources and {} destinations", x.rows(), graph.num_src(),
        graph.num_dst());
  Tensor out;
  if (options.project) {
    out = neighbours(*this, relu(lin(x)), graph);
  } else {
    check<Unsupported>(is_linear(options.aggregate), "sage_conv: reduce {} of a sparse x needs project",
                       name(options.aggregate));
    out = aggregate(*this, matmul(x, transpose(lin_l.weight)), graph);
  }
  return finish(*this, out, options.root_weight ? lin_r(x) : Tensor());
}

}  // namespace tessera
