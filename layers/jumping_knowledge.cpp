#include "tessera/layers/jumping_knowledge.h"

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/lstm.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"
#include "tessera/layers/init.h"

namespace tessera {
namespace {

BidirectionalLstm::Direction make_direction(int64_t channels, int64_t hidden, Generator& generator) {
  BidirectionalLstm::Direction out;
  out.weight_ih = uniform_fan_in(Shape{4 * hidden, channels}, hidden, generator);
  out.weight_hh = uniform_fan_in(Shape{4 * hidden, hidden}, hidden, generator);
  out.bias_ih = uniform_fan_in(Shape{4 * hidden}, hidden, generator);
  out.bias_hh = uniform_fan_in(Shape{4 * hidden}, hidden, generator);
  return out;
}

}  // namespace

BidirectionalLstm::BidirectionalLstm(int64_t channels, int64_t hidden, Generator& generator)
    : forward(make_direction(channels, hidden, generator)), reverse(make_direction(channels, hidden, generator)) {}

Tensor BidirectionalLstm::operator()(const Tensor& x) const {
  const auto run = [&](const Direction& d, bool backwards) {
    return tessera::lstm(x, {d.weight_ih, d.weight_hh, d.bias_ih, d.bias_hh}, backwards);
  };
  return concat({run(forward, false), run(reverse, true)}, 2);
}

JumpingKnowledge::JumpingKnowledge(Mode given) : mode(given) {
  check(given != Mode::lstm, "jumping_knowledge: mode lstm needs its channels and layers");
}

JumpingKnowledge::JumpingKnowledge(int64_t channels, int layers, Generator& generator)
    : mode(Mode::lstm), lstm(channels, layers * channels / 2, generator), att(2 * (layers * channels / 2), 1, generator) {}

Tensor JumpingKnowledge::operator()(std::span<const Tensor> layers) const {
  check(!layers.empty(), "jumping_knowledge: no layers were given");
  if (mode == Mode::cat) return concat(layers, 1);
  for (size_t i = 0; i < layers.size(); ++i)
    check(layers[i].ndim() == 2 && layers[i].shape() == layers[0].shape(),
          "jumping_knowledge: layer {} has shape {} but layer 0 has {}", int64_t(i), layers[i].shape(), layers[0].shape());
  if (mode == Mode::max) return max(stack(layers, 0), 0).values;
  const Tensor x = stack(layers, 1);  // (N, L, C)
  const Tensor states = lstm(x);      // (N, L, 2 H)
  const int64_t nodes = x.dim(0), count = x.dim(1);
  const Tensor scores = reshape(att(reshape(states, Shape{nodes * count, states.dim(2)})), Shape{nodes, count});
  return sum(mul(x, reshape(softmax(scores, 1), Shape{nodes, count, 1})), 1);
}

}  // namespace tessera
