#include "tessera/layers/models/between_layers.h"

#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/dropout.h"

namespace tessera {

std::vector<LayerSizes> layer_sizes(const char* model, const GnnOptions& o) {
  check(o.in >= 1 && o.hidden >= 1 && o.out >= 1, "{}: sizes in {}, hidden {} and out {} need to be 1 or more", model, o.in,
        o.hidden, o.out);
  check(o.layers >= 1, "{}: {} layers asked but needs 1 or more", model, o.layers);
  for (const double p : {o.dropout, o.input_dropout})
    check(p >= 0 && p <= 1, "{}: dropout is {} but needs to be in [0, 1]", model, p);
  std::vector<LayerSizes> sizes;
  for (int i = 0; i < o.layers; ++i)
    sizes.push_back({i == 0 ? o.in : o.hidden, i + 1 == o.layers && o.jump == Jump::none ? o.out : o.hidden});
  return sizes;
}

BetweenLayers::BetweenLayers(const GnnOptions& o, Generator& generator) {
  const bool jumps = o.jump != Jump::none;
  for (int i = 0; i < o.layers; ++i) norms.emplace_back(i + 1 < o.layers || jumps ? o.norm : NodeNorm::Kind::none, o.hidden);
  if (o.jump == Jump::cat) jk = JumpingKnowledge(JumpingKnowledge::Mode::cat);
  if (o.jump == Jump::max) jk = JumpingKnowledge(JumpingKnowledge::Mode::max);
  if (o.jump == Jump::lstm) jk = JumpingKnowledge(o.hidden, o.layers, generator);
  if (jumps) lin = Linear(o.jump == Jump::cat ? o.layers * o.hidden : o.hidden, o.out, generator);
}

Tensor BetweenLayers::operator()(const GnnOptions& o, bool training,
                                 const std::function<Tensor(size_t, const Tensor&)>& layer, Generator& generator,
                                 const SegmentPlan& nodes) const {
  std::vector<Tensor> outputs;
  Tensor h;
  for (size_t i = 0; i < norms.size(); ++i) {
    h = layer(i, h);
    if (i + 1 == norms.size() && o.jump == Jump::none) return h;
    if (o.act_first) h = activate(h, o.act);
    h = norms[i](h, nodes);
    if (!o.act_first) h = activate(h, o.act);
    if (training && o.dropout > 0) h = dropout(h, o.dropout, generator);
    if (o.jump != Jump::last) outputs.push_back(h);
  }
  return lin(o.jump == Jump::last ? h : jk(outputs));
}

}  // namespace tessera
