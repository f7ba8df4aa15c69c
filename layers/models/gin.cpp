#include "tessera/layers/models/gin.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/matmul.h"

namespace tessera {
namespace {

/// nn((1 + eps) x + A x) of x through the first matrix of nn: (1 + eps) x W + A (x W).
Tensor after_product(const GinConv<Mlp>& conv, const Tensor& product, const Graph& graph) {
  return conv.nn.after_first_product(add(mul(product, shift(conv.eps, 1)), spmm(graph, product)));
}

Tensor first_layer(const GinConv<Mlp>& conv, const SparseMatrix& x, const Graph& graph) {
  return after_product(conv, matmul(x, transpose(conv.nn.lins[0].weight)), graph);
}

Tensor first_layer(const GinConv<Mlp>& conv, const Tensor& x, const Graph& graph) {
  const Tensor& weight = conv.nn.lins[0].weight;
  check(x.ndim() == 2 && x.dim(0) == graph.num_src() && x.dim(1) == weight.dim(1), "gin: x has shape {} but needs [{}, {}]",
        x.shape(), graph.num_src(), weight.dim(1));
  return weight.dim(0) < weight.dim(1) ? after_product(conv, matmul(x, weight, {.transpose_b = true}), graph)
                                       : conv(x, graph);
}

template <class Features>
Tensor forward(const Gin& model, const Features& x, const Graph& graph, Generator& generator, const SegmentPlan& nodes) {
  const GnnOptions& options = model.options;
  const auto layer = [&](size_t i, const Tensor& h) {
    if (i > 0) return model.convs[i](h, graph);
    const bool drops = model.training && options.input_dropout > 0;
    return first_layer(model.convs[0], drops ? dropout(x, options.input_dropout, generator) : x, graph);
  };
  return model.between(options, model.training, layer, generator, nodes);
}

}  // namespace

Gin::Gin(const GnnOptions& given, Generator& generator, const GinConvOptions& conv) : options(given) {
  const MlpOptions mlp{.act = given.act, .act_first = given.act_first, .norm = given.norm};
  for (const LayerSizes& size : layer_sizes("gin", options))
    convs.emplace_back(Mlp({size.in, size.out, size.out}, generator, mlp), conv);
  between = BetweenLayers(options, generator);
}

Tensor Gin::operator()(const Tensor& x, const Graph& graph, Generator& generator, const SegmentPlan& nodes) const {
  return forward(*this, x, graph, generator, nodes);
}

Tensor Gin::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator, const SegmentPlan& nodes) const {
  return forward(*this, x, graph, generator, nodes);
}

}  // namespace tessera
