#include "tessera/layers/conv/gine_conv.h"

#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/edge_plans.h"

namespace tessera {

Tensor gine_sum(const Graph& graph, const Tensor& x, const Tensor& edge) {
  check(x.ndim() == 2 && x.dim(0) == graph.num_src(), "gine_conv: x has shape {} but the graph has {} nodes", x.shape(),
        graph.num_src());
  check(edge.defined(), "gine_conv: edge_attr was not given");
  check(edge.ndim() == 2 && edge.dim(0) == graph.num_edges() && edge.dim(1) == x.dim(1),
        "gine_conv: edge_attr has shape {} but needs [{}, {}]; a layer made with edge_dim takes other widths", edge.shape(),
        graph.num_edges(), x.dim(1));
  return segment_reduce(relu(add(gather(x, edges_by_src(graph)), edge)), edges_by_dst(graph));
}

}  // namespace tessera
