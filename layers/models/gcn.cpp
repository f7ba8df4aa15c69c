#include "tessera/layers/models/gcn.h"

#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"

namespace tessera {
namespace {

template <class Features>
Tensor forward(const Gcn& model, const Features& x, const Graph& graph, Generator& generator) {
  const GcnOptions& options = model.options;
  const bool drop_input = model.training && options.input_dropout > 0;
  Tensor h = drop_input ? model.convs[0](dropout(x, options.input_dropout, generator), graph) : model.convs[0](x, graph);
  for (size_t i = 1; i < model.convs.size(); ++i) {
    h = relu(h);
    if (model.training && options.dropout > 0) h = dropout(h, options.dropout, generator);
    h = model.convs[i](h, graph);
  }
  return h;
}

}  // namespace

Gcn::Gcn(const GcnOptions& given, Generator& generator) : options(given) {
  check(given.in >= 1 && given.hidden >= 1 && given.out >= 1, "gcn: sizes in {}, hidden {} and out {} need to be 1 or more",
        given.in, given.hidden, given.out);
  check(given.layers >= 1, "gcn: {} layers asked but needs 1 or more", given.layers);
  for (int i = 0; i < given.layers; ++i)
    convs.emplace_back(i == 0 ? given.in : given.hidden, i + 1 == given.layers ? given.out : given.hidden, generator,
                       given.conv);
}

Tensor Gcn::operator()(const Tensor& x, const Graph& graph, Generator& generator) const {
  return forward(*this, x, graph, generator);
}

Tensor Gcn::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator) const {
  return forward(*this, x, graph, generator);
}

}  // namespace tessera
