#include "tessera/layers/models/appnp.h"

#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"

namespace tessera {
namespace {

template <class Features>
Tensor forward(const Appnp& model, const Features& x, const Graph& graph, Generator& generator, const Tensor& edge_weight) {
  const double p = model.training ? model.options.dropout : 0;
  Tensor h = relu(p > 0 ? model.lin1(dropout(x, p, generator)) : model.lin1(x));
  if (p > 0) h = dropout(h, p, generator);
  return appnp(model.lin2(h), graph, edge_weight, model.options.propagation);
}

}  // namespace

Appnp::Appnp(const AppnpModelOptions& given, Generator& generator) : options(given) {
  check(given.in >= 1 && given.hidden >= 1 && given.out >= 1,
        "appnp: sizes in {}, hidden {} and out {} need to be 1 or more", given.in, given.hidden, given.out);
  check(given.dropout >= 0 && given.dropout <= 1, "appnp: dropout is {} but needs to be in [0, 1]", given.dropout);
  check(given.propagation.hops >= 0, "appnp: {} hops asked but needs 0 or more", given.propagation.hops);
  check(given.propagation.alpha >= 0 && given.propagation.alpha <= 1, "appnp: alpha is {} but needs to be in [0, 1]",
        given.propagation.alpha);
  lin1 = Linear(given.in, given.hidden, generator);
  lin2 = Linear(given.hidden, given.out, generator);
}

Tensor Appnp::operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight) const {
  return forward(*this, x, graph, generator, edge_weight);
}

Tensor Appnp::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight) const {
  return forward(*this, x, graph, generator, edge_weight);
}

}  // namespace tessera
