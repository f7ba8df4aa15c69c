#pragma once

#include "tessera/core/tensor.h"

/// Losses; f32 or f64. A mean or sum has shape [] and is added in double over fixed blocks; `none` keeps each term.
/// The mean of no terms is an InvalidArgument, never NaN.
namespace tessera {

enum class Reduction : uint8_t { mean, sum, none };

struct CrossEntropyOptions {
  Tensor class_weights;         ///< (C) of the logits' dtype; undefined: 1 each
  double label_smoothing = 0;   ///< in [0, 1): that much of each target is spread evenly over the classes
  bool ignore_missing = false;  ///< rows with label -1 are left out, and not counted
  Reduction reduction = Reduction::mean;
};

/// Of -log softmax(logits[i])[labels[i]], over the chosen rows; only those are computed. Weighted, each term is times
/// w[label], and the mean is over the weights taken (as PyTorch). With smoothing s a term is
/// (1 - s) w_y (lse - x_y) + s / C sum_j w_j (lse - x_j).
/// logits (N, C); labels i32 (N), read at chosen rows only; rows i32 (M), may repeat; undefined: all rows. `none` gives (M).
/// Gradient to logits: for a mean (softmax(logits[i]) - onehot(labels[i])) * times chosen / M, zero elsewhere.
/// Errors: InvalidArgument for shapes, no row left, a row outside [0, N) or a label outside [0, C), naming the first.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const Tensor& rows = {}, const CrossEntropyOptions& options = {});

/// The same of -log_probabilities[i, labels[i]]. Errors: also InvalidArgument for label_smoothing.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& labels, const Tensor& rows = {},
                const CrossEntropyOptions& options = {});

struct BceOptions {
  Tensor positive_weights;      ///< (T) factors of the positive part, for logits (.., T); undefined: 1 each
  bool skip_nan = false;        ///< entries whose target is NaN are left out, not counted, and get gradient 0
  Reduction reduction = Reduction::mean;
};

/// Binary cross-entropy of logits x and targets t in [0, 1]: -(w t log s(x) + (1 - t) log(1 - s(x))), computed as
/// (1 - t) x + (1 + (w - 1) t) (log(1 + e^-|x|) + max(-x, 0)). Equal shapes and dtypes. Gradient to logits alone:
/// s(x) (1 + (w - 1) t) - w t. Errors: InvalidArgument for shapes, dtypes, or a mean of no entries.
Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, const BceOptions& options = {});

/// (x - target)^2. Equal shapes and dtypes. Gradients to both.
Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// |x - target|. Gradients to both, 0 where equal.
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::mean);
/// d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2. Gradients to both. Errors: InvalidArgument for beta <= 0.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1, Reduction reduction = Reduction::mean);

}  // namespace tessera
