#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Mean over the chosen rows of -log softmax(logits[i])[labels[i]], shape []. Only those rows are computed.
/// logits (N, C), f32 or f64; labels i32 (N), read at chosen rows only; rows i32 (M), may repeat; undefined: all rows.
/// Gradient: (softmax(logits[i]) - onehot(labels[i])) * times chosen / M, zero elsewhere.
/// Errors: InvalidArgument for shapes, no row chosen, a row outside [0, N) or a label outside [0, C), naming the first.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const Tensor& rows = {});

}  // namespace tessera
