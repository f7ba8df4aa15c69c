#include "tessera/layers/conv/le_conv.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

LeConv::LeConv(int64_t in, int64_t out, Generator& generator, bool bias)
    : lin1(in, out, generator, {.bias = bias}),
      lin2(in, out, generator, {.bias = false}),
      lin3(in, out, generator, {.bias = bias}) {}

Tensor LeConv::operator()(const Tensor& x, const Graph& graph, const Tensor& edge_weight) const {
  check(x.ndim() == 2 && x.dim(0) == graph.num_src() && graph.num_src() == graph.num_dst(),
        "le_conv: x has shape {} but the graph has {} sources and {} destinations", x.shape(), graph.num_src(),
        graph.num_dst());
  const SpmmOptions weighted{.weight = edge_weight};
  const Tensor received = edge_weight.defined() ? spmm(graph, ones(Shape{x.dim(0), 1}, x.dtype()), Reduce::sum, weighted)
                                                : reshape(cast(graph.in_degree(), x.dtype()), Shape{x.dim(0), 1});
  return add(sub(spmm(graph, lin1(x), Reduce::sum, weighted), mul(lin2(x), received)), lin3(x));
}

}  // namespace tessera
