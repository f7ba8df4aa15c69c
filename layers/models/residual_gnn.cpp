#include "tessera/layers/models/residual_gnn.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/unary.h"
#include "tessera/sparse/normalise.h"

namespace tessera {
namespace {

Tensor dropped(const Tensor& x, double p, Generator& generator) { return p > 0 ? dropout(x, p, generator) : x; }

Tensor aggregate(ResidualGnnOptions::Aggregate how, const Tensor& x, const Graph& graph) {
  if (how == ResidualGnnOptions::Aggregate::sage) return concat({x, spmm(graph, x, Reduce::mean)}, 1);
  const GcnNorm norm = gcn_norm(graph, {}, {.dtype = x.dtype()});
  return spmm(norm.graph, x, Reduce::sum, norm.factors());
}

template <class Features>
Tensor forward(const ResidualGnn& model, const Features& features, const Graph& graph, Generator& generator) {
  const double p = model.training ? model.options.dropout : 0;
  Tensor x = gelu(dropped(model.input_linear(features), p, generator));
  for (const ResidualGnn::Layer& layer : model.residual_modules) {
    const Tensor gathered = aggregate(model.options.aggregate, layer.normalization(x), graph);
    x = add(x, layer.module.feed_forward_module(gathered, p, generator));
  }
  return model.output_linear(model.output_normalization(x));
}

}  // namespace

Tensor FeedForward::operator()(const Tensor& x, double p, Generator& generator) const {
  const Tensor hidden = gelu(dropped(linear_1(x), p, generator));
  return dropped(linear_2(hidden), p, generator);
}

ResidualGnn::ResidualGnn(const ResidualGnnOptions& o, Generator& generator) : options(o) {
  check(o.in >= 1 && o.hidden >= 1 && o.out >= 1, "residual_gnn: sizes in {}, hidden {} and out {} need to be 1 or more",
        o.in, o.hidden, o.out);
  check(o.layers >= 1, "residual_gnn: {} layers asked but needs 1 or more", o.layers);
  check(o.dropout >= 0 && o.dropout <= 1, "residual_gnn: dropout is {} but needs to be in [0, 1]", o.dropout);
  const int64_t gathered = o.aggregate == ResidualGnnOptions::Aggregate::sage ? 2 * o.hidden : o.hidden;
  input_linear = Linear(o.in, o.hidden, generator);
  for (int i = 0; i < o.layers; ++i) {
    Layer layer{.normalization = NodeNorm(NodeNorm::Kind::layer_node, o.hidden), .module = {}};
    layer.module.feed_forward_module.linear_1 = Linear(gathered, o.hidden, generator);
    layer.module.feed_forward_module.linear_2 = Linear(o.hidden, o.hidden, generator);
    residual_modules.push_back(std::move(layer));
  }
  output_normalization = NodeNorm(NodeNorm::Kind::layer_node, o.hidden);
  output_linear = Linear(o.hidden, o.out, generator);
}

Tensor ResidualGnn::operator()(const Tensor& x, const Graph& graph, Generator& generator) const {
  return forward(*this, x, graph, generator);
}

Tensor ResidualGnn::operator()(const SparseMatrix& x, const Graph& graph, Generator& generator) const {
  return forward(*this, x, graph, generator);
}

}  // namespace tessera
