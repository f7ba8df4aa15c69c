#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Weights of a layer, named and laid out as torch.nn.LSTM's: gates in the order i, f, g, o.
struct LstmWeights {
  Tensor weight_ih;  ///< (4 H, F)
  Tensor weight_hh;  ///< (4 H, H)
  Tensor bias_ih{};  ///< (4 H), or undefined
  Tensor bias_hh{};  ///< (4 H), or undefined
};

/// Hidden states of a long short-term memory (Hochreiter and Schmidhuber, 1997) that starts from zeros, one layer:
///
///     i, f, o = sigmoid(W_ih x_t + b_ih + W_hh h + b_hh) by gate;  g = tanh(the same)
///     c = f c + i g;  h_t = o tanh(c)
///
/// x (N, T, F), out (N, T, H), of f32, f64, or bf16 and f16 as storage (all in f32, rounded once): sequence first to last,
/// or last to first with `reverse` (a layer in both directions is concat({lstm(x, a), lstm(x, b, true)}, 2)). T = 0 gives
/// nothing. Gradients to x and every weight. Errors: InvalidArgument for shapes or dtypes; Unsupported for other dtypes.
Tensor lstm(const Tensor& x, const LstmWeights& weights, bool reverse = false);

struct LstmState {
  Tensor h{}, c{};  ///< (N, H) each
};

struct LstmResult {
  Tensor out;      ///< (N, T, H), as above
  LstmState last;  ///< after the last step taken (in reverse, that is step 0)
};

/// The same from a given state, either part of which may be undefined: zeros; and with the last state. T = 0 gives the
/// initial state back. Gradients also to the initial state, and from the last one.
/// Errors: also InvalidArgument for a state of another shape or dtype.
LstmResult lstm(const Tensor& x, const LstmWeights& weights, const LstmState& initial, bool reverse = false);

}  // namespace tessera
