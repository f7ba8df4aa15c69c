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
/// x (N, T, F), out (N, T, H): sequence first to last, or last to first with `reverse` (a layer in both directions is
/// concat({lstm(x, a), lstm(x, b, true)}, 2)). f32 or f64; T = 0 gives nothing. Gradients to x and every weight.
/// Errors: InvalidArgument for shapes or dtypes; Unsupported for other dtypes.
Tensor lstm(const Tensor& x, const LstmWeights& weights, bool reverse = false);

}  // namespace tessera
