#include "tessera/layers/conv/sg_conv.h"

#include <vector>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/sparse/normalise.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

Tensor with_bias(const Tensor& x, const Tensor& bias) { return bias.defined() ? add_bias(x, bias) : x; }

}  // namespace

SgConv::SgConv(int64_t in, int64_t out, Generator& generator, SgConvOptions given)
    : lin(in, out, generator, {.bias = given.bias}), options(given) {}

Tensor propagate(const Tensor& x, const Graph& graph, const Tensor& edge_weight, const SgConvOptions& options) {
  check(options.hops >= 0, "sg_conv: {} hops asked but needs 0 or more", options.hops);
  check(x.ndim() == 2 && x.dim(0) == graph.num_src(), "sg_conv: x has shape {} but the graph has {} nodes", x.shape(),
        graph.num_src());
  const GcnNorm norm = gcn_norm(graph, edge_weight, {.add_self_loops = options.add_self_loops, .dtype = x.dtype()});
  Tensor out = x;
  for (int hop = 0; hop < options.hops; ++hop) out = spmm(norm.graph, out, Reduce::sum, norm.factors());
  return out;
}

Tensor sign_features(const Tensor& x, const Graph& graph, const Tensor& edge_weight, const SgConvOptions& options) {
  check(options.hops >= 0, "sg_conv: {} hops asked but needs 0 or more", options.hops);
  SgConvOptions one = options;
  one.hops = 1;
  std::vector<Tensor> parts{x};
  for (int hop = 0; hop < options.hops; ++hop) parts.push_back(propagate(parts.back(), graph, edge_weight, one));
  return concat(parts, 1);
}

Tensor SgConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight) const {
  if (lin.weight.dim(0) >= lin.weight.dim(1)) return lin(propagate(x, graph, edge_weight, options));
  return with_bias(propagate(matmul(x, lin.weight, {.transpose_b = true}), graph, edge_weight, options), lin.bias);
}

Tensor SgConv::operator()(const SparseMatrix& x, const Graph& graph, const Tensor& edge_weight) const {
  return with_bias(propagate(matmul(x, transpose(lin.weight)), graph, edge_weight, options), lin.bias);
}

}  // namespace tessera
