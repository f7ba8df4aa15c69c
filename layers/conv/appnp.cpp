#include "tessera/layers/conv/appnp.h"

#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/unary.h"
#include "tessera/sparse/normalise.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

Tensor appnp(const Tensor& x, const Graph& graph, const Tensor& edge_weight, const AppnpOptions& options) {
  check(options.hops >= 0, "appnp: {} hops asked but needs 0 or more", options.hops);
  check(options.alpha >= 0 && options.alpha <= 1, "appnp: alpha is {} but needs to be in [0, 1]", options.alpha);
  check(x.ndim() == 2 && x.dim(0) == graph.num_src(), "appnp: x has shape {} but the graph has {} nodes", x.shape(),
        graph.num_src());
  const GcnNorm norm = gcn_norm(graph, edge_weight, {.add_self_loops = options.add_self_loops, .dtype = x.dtype()});
  const Tensor home = scale(x, options.alpha);
  Tensor h = x;
  for (int hop = 0; hop < options.hops; ++hop)
    h = add(scale(spmm(norm.graph, h, Reduce::sum, norm.factors()), 1 - options.alpha), home);
  return h;
}

}  // namespace tessera
