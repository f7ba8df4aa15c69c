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

JumpingKnowledge::JumpingKnowledge(int64_t channels, int count, Generator& generator) : mode(Mode::lstm), layers(count) {
  check(channels >= 1 && count >= 1 && count * channels >= 2,
        "jumping_knowledge: {} layers of {} channels are too few for an lstm", count, channels);
  const int64_t hidden = count * channels / 2;
  lstm = BidirectionalLstm(channels, hidden, generator);
  att = Linear(2 * hidden, 1, generator);
}

Tensor JumpingKnowledge::operator()(std::span<const Tensor> outputs) const {
  check(!outputs.empty(), "jumping_knowledge: no layers were given");
  if (mode == Mode::cat) return concat(outputs, 1);
  for (size_t i = 0; i < outputs.size(); ++i)
    check(outputs[i].ndim() == 2 && outputs[i].shape() == outputs[0].shape(),
          "jumping_knowledge: layer {} has shape {} but layer 0 has {}", int64_t(i), outputs[i].shape(), outputs[0].shape());
  if (mode == Mode::max) return max(stack(outputs, 0), 0).values;
  check(int64_t(outputs.size()) == layers, "jumping_knowledge: {} layers were given but the lstm was made for {}",
        int64_t(outputs.size()), layers);
  const Tensor x = stack(outputs, 1);  // (N, L, C)
  const Tensor states = lstm(x);       // (N, L, 2 H)
  const int64_t nodes = x.dim(0), count = x.dim(1);
  const Tensor scores = reshape(att(reshape(states, Shape{nodes * count, states.dim(2)})), Shape{nodes, count});
  return sum(mul(x, reshape(softmax(scores, 1), Shape{nodes, count, 1})), 1);
}

}  // namespace tessera
