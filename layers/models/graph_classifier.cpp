#include "tessera/layers/models/graph_classifier.h"

#include <type_traits>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/scatter/segment_reduce.h"

namespace tessera {
namespace {

template <class Conv>
constexpr bool kGin = std::is_same_v<Conv, GinConv<GinMlp>>;

template <class Conv>
Conv make(int64_t in, const GraphClassifierOptions& options, Generator& generator) {
  if constexpr (kGin<Conv>)
    return Conv(GinMlp(in, options.hidden, generator, options.inner_norm), {.train_eps = options.train_eps});
  else
    return Conv(in, options.hidden, generator);
}

Tensor linear_relu(const Linear& linear, const Tensor& x) {
  check(x.dim(1) == linear.weight.dim(1), "linear: x has shape {} but needs to be [N, {}]", x.shape(), linear.weight.dim(1));
  return matmul(x, linear.weight, {.transpose_b = true, .bias = linear.bias, .activation = Activation::relu});
}

}  // namespace

GinMlp::GinMlp(int64_t in, int64_t hidden, Generator& generator, bool with_inner_norm)
    : first(in, hidden, generator), second(hidden, hidden, generator), norm(hidden), inner_norm(with_inner_norm) {
  if (inner_norm) inner = BatchNorm1d(hidden);
}

Tensor GinMlp::operator()(const Tensor& x) const {
  const Tensor h = linear_relu(first, x);
  return norm(linear_relu(second, inner_norm ? inner(h) : h));
}

template <class Conv>
GraphClassifier<Conv>::GraphClassifier(const GraphClassifierOptions& given, Generator& generator) : options(given) {
  check(given.in >= 1 && given.hidden >= 1 && given.out >= 1,
        "graph_classifier: sizes in {}, hidden {} and out {} need to be 1 or more", given.in, given.hidden, given.out);
  check(given.layers >= 1, "graph_classifier: {} layers asked but needs 1 or more", given.layers);
  check(given.readout != Reduce::mul, "graph_classifier: readout mul is not one of sum, mean, max and min");
  conv1 = make<Conv>(given.in, given, generator);
  for (int i = 1; i < given.layers; ++i) convs.push_back(make<Conv>(given.hidden, given, generator));
  if (given.jump)
    jump = *given.jump == JumpingKnowledge::Mode::lstm ? JumpingKnowledge(given.hidden, given.layers, generator)
                                                       : JumpingKnowledge(*given.jump);
  const bool side_by_side = given.jump == JumpingKnowledge::Mode::cat;
  lin1 = Linear(side_by_side ? given.layers * given.hidden : given.hidden, given.hidden, generator);
  lin2 = Linear(given.hidden, given.out, generator);
}

template <class Conv>
Tensor GraphClassifier<Conv>::operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes,
                                         Generator& generator) const {
  const auto layer = [&](const Conv& conv, const Tensor& in) {
    const Tensor out = conv(in, graph);
    return kGin<Conv> ? out : relu(out);
  };
  const auto read = [&](const Tensor& h) { return segment_reduce(h, nodes, options.readout); };
  // Side by side, each layer is read out as soon as it is there: the same columns, without the N x layers hidden buffer.
  const bool side_by_side = options.jump == JumpingKnowledge::Mode::cat;
  std::vector<Tensor> kept;
  Tensor h = layer(conv1, x);
  if (options.jump) kept.push_back(side_by_side ? read(h) : h);
  for (const Conv& conv : convs) {
    h = layer(conv, h);
    if (options.jump) kept.push_back(side_by_side ? read(h) : h);
  }
  if (options.jump) h = jump(kept);
  if (!side_by_side) h = read(h);
  h = linear_relu(lin1, h);
  if (training && options.dropout > 0) h = dropout(h, options.dropout, generator);
  return lin2(h);
}

template struct GraphClassifier<GcnConv>;
template struct GraphClassifier<SageConv>;
template struct GraphClassifier<GinConv<GinMlp>>;

}  // namespace tessera
