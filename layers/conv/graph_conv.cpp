#include "tessera/layers/conv/graph_conv.h"

#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

GraphConv::GraphConv(int64_t in, int64_t out, Generator& generator, GraphConvOptions given) : options(given) {
  check(given.aggregate != Reduce::mul, "graph_conv: reduce mul is not one of sum, mean, max and min");
  lin_rel = Linear(in, out, generator, {.bias = options.bias});
  lin_root = Linear(in, out, generator, {.bias = false});
}

Tensor GraphConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight) const {
  check(x.ndim() == 2 && x.dim(0) == graph.num_src(), "graph_conv: x has shape {} but the graph has {} nodes", x.shape(),
        graph.num_src());
  const SpmmOptions factors{.weight = edge_weight};
  const bool linear = options.aggregate == Reduce::sum || options.aggregate == Reduce::mean;
  if (linear && lin_rel.weight.dim(0) < lin_rel.weight.dim(1)) {
    const Tensor sent = matmul(x, lin_rel.weight, {.transpose_b = true});
    const Tensor root = matmul(x, lin_root.weight, {.transpose_b = true, .bias = lin_rel.bias});
    return add(spmm(graph, sent, options.aggregate, factors), root);
  }
  return add(lin_rel(spmm(graph, x, options.aggregate, factors)), lin_root(x));
}

}  // namespace tessera
