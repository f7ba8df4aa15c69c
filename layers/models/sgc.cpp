#include "tessera/layers/models/sgc.h"

namespace tessera {

Sgc::Sgc(const SgcOptions& o, Generator& generator) {
  check(o.in >= 1 && o.out >= 1, "sgc: sizes in {} and out {} need to be 1 or more", o.in, o.out);
  check(o.hops >= 0, "sgc: {} hops asked but needs 0 or more", o.hops);
  conv1 = SgConv(o.in, o.out, generator, {.hops = o.hops});
}

Tensor Sgc::operator()(const Tensor& x, const Graph& graph, Generator&, const Tensor& edge_weight) const {
  return conv1(x, graph, edge_weight);
}

Tensor Sgc::operator()(const SparseMatrix& x, const Graph& graph, Generator&, const Tensor& edge_weight) const {
  return conv1(x, graph, edge_weight);
}

}  // namespace tessera
