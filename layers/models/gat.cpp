#include "tessera/layers/models/gat.h"

#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"

namespace tessera {
namespace {

template <class Features>
Tensor forward(const Gat& model, const Features& x, const Graph& graph, Generator& generator) {
  const double p = model.training ? model.options.dropout : 0;
  Tensor h = p > 0 ? model.convs[0](dropout(x, p, generator), graph, generator) : model.convs[0](x, graph, generator);
  for (size_t i = 1; i < model.convs.size(); ++i) {
    h = elu(h);
    if (p > 0) h = dropout(h, p, generator);
    h = model.convs[i](h, graph, generator);
  }
  return h;
}

}  // namespace

Gat::Gat(const GatOptions& given, Generator& generator) : options(given) {
  check(given.in >= 1 && given.hidden >= 1 && given.out >= 1, "gat: sizes in {}, hidden {} and out {} need to be 1 or more",
        given.in, given.hidden, given.out);
  check(given.layers >= 1 && given.heads >= 1 && given.out_heads >= 1,
        "gat: {} layers, {} heads and {} out_heads were given but it needs 1 or more of each", given.layers, given.heads,
        given.out_heads);
  for (int i = 0; i < given.layers; ++i) {
    const bool last = i + 1 == given.layers;
    convs.emplace_back(
        i == 0 ? given.in : given.hidden * given.heads, last ? given.out : given.hidden, generator,
        GatConvOptions{.heads = last ? given.out_heads : given.heads, .concat = !last, .dropout = given.dropout});
  }
}

Tensor Gat::operator()(const Tensor& x, const Graph& graph, Generator& generator) const {
  return forward(*this, x, graph, generator);
}

Tensor Gat::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator) const {
  return forward(*this, x, graph, generator);
}

}  // namespace tessera
