#include "tessera/layers/models/gcn.h"

#include "tessera/core/ops/dropout.h"

namespace tessera {
namespace {

template <class Features>
Tensor forward(const Gcn& model, const Features& x, const Graph& graph, Generator& generator, const Tensor& edge_weight,
               const SegmentPlan& nodes) {
  const GnnOptions& options = model.options;
  const auto layer = [&](size_t i, const Tensor& h) {
    if (i > 0) return model.convs[i](h, graph, edge_weight);
    const bool drops = model.training && options.input_dropout > 0;
    return drops ? model.convs[0](dropout(x, options.input_dropout, generator), graph, edge_weight)
                 : model.convs[0](x, graph, edge_weight);
  };
  return model.between(options, model.training, layer, generator, nodes);
}

}  // namespace

Gcn::Gcn(const GnnOptions& given, Generator& generator, const GcnConvOptions& conv) : options(given) {
  for (const LayerSizes& size : layer_sizes("gcn", options)) convs.emplace_back(size.in, size.out, generator, conv);
  between = BetweenLayers(options, generator);
}

Tensor Gcn::operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_weight,
                       const SegmentPlan& nodes) const {
  return forward(*this, x, graph, generator, edge_weight, nodes);
}

Tensor Gcn::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const Tensor& edge_weight,
                       const SegmentPlan& nodes) const {
  return forward(*this, x, graph, generator, edge_weight, nodes);
}

}  // namespace tessera
