#pragma once

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/ops/window.h"
#include "tessera/core/tensor.h"

namespace tessera {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;    ///< zeros around x, at both ends
  Pair dilation = 1;   ///< distance of neighbouring taps
  int64_t groups = 1;  ///< channels in that many parts, each convolved alone; as many as channels: depthwise
  Tensor bias{};       ///< (O), added to each output channel; undefined: none
  Activation activation = Activation::none;
};

/// Convolution of images, as PyTorch has it (a cross-correlation):
///
///     y[n, o, i, j] = activation(bias[o] + sum over c, p, q of
///                     weight[o, c, p, q] x[n, c', i stride - padding + p dilation, j stride - padding + q dilation])
///
/// c' being channel c of o's group, and x zero outside itself. x (N, C, H, W), weight (O, C / groups, KH, KW), out
/// (N, O, H', W'), H' = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1 rounded down. No image gives none, and zero
/// gradients to weight and bias. f32 (oneDNN) or f64 (a plain product of unfolded images, for checks); bf16 and f16 are
/// storage: computed in f32, rounded once (the bias may then be f32). Gradients to x, weight and bias; an activation's
/// follows from its output. The same bits for every thread count: images are the tiles, and gradients of weights are added
/// up over fixed runs of images in a fixed tree. Errors: InvalidArgument for shapes, dtypes, groups that do not divide the
/// channels, or a kernel larger than the padded image; Unsupported for other dtypes.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options = {});

}  // namespace tessera
