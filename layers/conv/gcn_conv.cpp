#include "tessera/layers/conv/gcn_conv.h"

#include "tessera/core/ops/elementwise.h"
#include "tessera/layers/init.h"
#include "tessera/sparse/normalise.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

GcnNorm norm_of(const GcnConv& conv, const Graph& graph, const Tensor& edge_weight) {
  if (!conv.options.normalize) return {graph, {}, edge_weight};
  return gcn_norm(graph, edge_weight, {.add_self_loops = conv.options.add_self_loops, .dtype = conv.lin.weight.dtype()});
}

Tensor aggregate(const Tensor& x, const GcnNorm& norm, const Tensor& bias) {
  SpmmOptions options = norm.factors();
  options.bias = bias;
  return spmm(norm.graph, x, Reduce::sum, options);
}

void check_rows(int64_t rows, const Graph& graph) {
  check(rows == graph.num_src(), "gcn_conv: x has {} rows but the graph has {} nodes", rows, graph.num_src());
}

}  // namespace

GcnConv::GcnConv(int64_t in, int64_t out, Generator& generator, GcnConvOptions given)
    : lin(in, out, generator, {.bias = false, .glorot = true}), options(given) {
  if (options.bias) bias = zero_parameter(Shape{out});
}

Tensor GcnConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight) const {
  check(x.ndim() == 2, "gcn_conv: x has shape {} but needs two dimensions", x.shape());
  check_rows(x.dim(0), graph);
  const GcnNorm norm = norm_of(*this, graph, edge_weight);
  const bool aggregate_first = lin.weight.dim(1) < lin.weight.dim(0);
  if (!aggregate_first) return aggregate(lin(x), norm, bias);
  const Tensor out = lin(aggregate(x, norm, {}));
  return bias.defined() ? add_bias(out, bias) : out;
}

Tensor GcnConv::operator()(const SparseMatrix& x, const Graph& graph, const Tensor& edge_weight) const {
  check_rows(x.rows(), graph);
  return aggregate(lin(x), norm_of(*this, graph, edge_weight), bias);
}

}  // namespace tessera
