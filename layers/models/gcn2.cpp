#include "tessera/layers/models/gcn2.h"

#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"

namespace tessera {
namespace {

template <class Features>
Tensor forward(const Gcn2& model, const Features& x, const Graph& graph, Generator& generator, const Tensor& edge_weight) {
  const double p = model.training ? model.options.dropout : 0;
  const auto drop = [&](const auto& h) { return p > 0 ? dropout(h, p, generator) : h; };
  const Tensor x_0 = relu(model.lins[0](drop(x)));
  Tensor h = x_0;
  for (const Gcn2Conv& conv : model.convs) h = relu(conv(drop(h), x_0, graph, edge_weight));
  return model.lins[1](drop(h));
}

}  // namespace

Gcn2::Gcn2(const Gcn2Options& given, Generator& generator) : options(given) {
  check(given.in >= 1 && given.hidden >= 1 && given.out >= 1, "gcn2: sizes in {}, hidden {} and out {} need to be 1 or more",
        given.in, given.hidden, given.out);
  check(given.layers >= 1, "gcn2: {} layers asked but needs 1 or more", given.layers);
  check(given.dropout >= 0 && given.dropout <= 1, "gcn2: dropout is {} but needs to be in [0, 1]", given.dropout);
  lins.emplace_back(given.in, given.hidden, generator);
  lins.emplace_back(given.hidden, given.out, generator);
  for (int i = 0; i < given.layers; ++i)
    convs.emplace_back(
        given.hidden, generator,
        Gcn2ConvOptions{.alpha = given.alpha, .theta = given.theta, .layer = i + 1, .shared_weights = given.shared_weights});
}

Tensor Gcn2::operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight) const {
  return forward(*this, x, graph, generator, edge_weight);
}

Tensor Gcn2::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight) const {
  return forward(*this, x, graph, generator, edge_weight);
}

}  // namespace tessera
