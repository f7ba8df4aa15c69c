#pragma once

#include <span>

#include "tessera/core/random.h"
#include "tessera/layers/linear.h"

namespace tessera {

/// The weights of torch.nn.LSTM(channels, hidden, bidirectional=True): `weight_ih_l0`, ..., `bias_hh_l0_reverse`.
struct BidirectionalLstm {
  struct Direction {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  Direction forward, reverse;

  BidirectionalLstm() = default;
  BidirectionalLstm(int64_t channels, int64_t hidden, Generator& generator);

  /// (N, T, 2 hidden) of x (N, T, channels): the states of both directions side by side.
  Tensor operator()(const Tensor& x) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight_ih_l0", self.forward.weight_ih);
    visitor("weight_hh_l0", self.forward.weight_hh);
    visitor("bias_ih_l0", self.forward.bias_ih);
    visitor("bias_hh_l0", self.forward.bias_hh);
    visitor("weight_ih_l0_reverse", self.reverse.weight_ih);
    visitor("weight_hh_l0_reverse", self.reverse.weight_hh);
    visitor("bias_ih_l0_reverse", self.reverse.bias_ih);
    visitor("bias_hh_l0_reverse", self.reverse.bias_hh);
  }
};

/// Layer aggregation (Xu et al., arXiv 1806.03536): the outputs x_1 .. x_L of a network's layers, each (N, C), as one:
///
///     cat    x_1 | ... | x_L                        (N, L C)
///     max    elementwise; among equals the first layer's wins and gets the gradient     (N, C)
///     lstm   sum over layers of softmax(att(lstm(x_1 .. x_L)))[l] * x_l                 (N, C)
///
/// State (lstm only) and initial values are torch_geometric.nn.JumpingKnowledge's: `lstm.*` with L C / 2 hidden channels a
/// direction, `att.weight` (1, 2 hidden), `att.bias` (1).
/// Errors: InvalidArgument for no layers, unequal shapes, or other counts than the lstm was made for.
struct JumpingKnowledge {
  enum class Mode : uint8_t { cat, max, lstm };
  Mode mode = Mode::cat;
  BidirectionalLstm lstm;
  Linear att;
  int layers = 0;  ///< that the lstm was made for

  JumpingKnowledge() = default;
  explicit JumpingKnowledge(Mode mode);
  /// Mode lstm, of `layers` layers of `channels` channels. Errors: InvalidArgument unless layers * channels is 2 or more.
  JumpingKnowledge(int64_t channels, int layers, Generator& generator);

  Tensor operator()(std::span<const Tensor> outputs) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lstm", self.lstm);
    visitor("att", self.att);
  }
};

}  // namespace tessera
