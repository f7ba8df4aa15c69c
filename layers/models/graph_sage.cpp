#include "tessera/layers/models/graph_sage.h"

#include "tessera/core/ops/dropout.h"

namespace tessera {
namespace {

template <class Features>
Tensor forward(const GraphSage& model, const Features& x, const Graph& graph, Generator& generator,
               const SegmentPlan& nodes) {
  const GnnOptions& options = model.options;
  const auto layer = [&](size_t i, const Tensor& h) {
    if (i > 0) return model.convs[i](h, graph);
    const bool drops = model.training && options.input_dropout > 0;
    return drops ? model.convs[0](dropout(x, options.input_dropout, generator), graph) : model.convs[0](x, graph);
  };
  return model.between(options, model.training, layer, generator, nodes);
}

}  // namespace

GraphSage::GraphSage(const GnnOptions& given, Generator& generator, const SageConvOptions& conv) : options(given) {
  for (const LayerSizes& size : layer_sizes("graph_sage", options)) convs.emplace_back(size.in, size.out, generator, conv);
  between = BetweenLayers(options, generator);
}

Tensor GraphSage::operator()(const Tensor& x, const Graph& graph, Generator& generator, const SegmentPlan& nodes) const {
  return forward(*this, x, graph, generator, nodes);
}

Tensor GraphSage::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator,
                             const SegmentPlan& nodes) const {
  return forward(*this, x, graph, generator, nodes);
}

}  // namespace tessera
