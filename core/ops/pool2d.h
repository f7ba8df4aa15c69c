#pragma once

#include "tessera/core/ops/window.h"
#include "tessera/core/tensor.h"

/// Windows over images, as PyTorch has them: x (N, C, H, W), out (N, C, H', W'); f32 or f64, and bf16 and f16 as storage of
/// f32. H' = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1 rounded down. No image or channel gives none.
/// Errors: InvalidArgument for shapes, a kernel that does not fit into the padded image, or a padding of more than half the
/// kernel (a window could then hold nothing); Unsupported for other dtypes.
namespace tessera {

struct MaxPool2dOptions {
  Pair stride = 0;  ///< 0: the kernel's size
  Pair padding = 0;
  Pair dilation = 1;
};

/// The largest of each window; NaN wins; padding never does. Gradient: to where it was taken from, of equal ones to the
/// first in row-major order.
Tensor max_pool2d(const Tensor& x, Pair kernel, MaxPool2dOptions options = {});

struct AvgPool2dOptions {
  Pair stride = 0;  ///< 0: the kernel's size
  Pair padding = 0;
  bool count_padding = true;  ///< padding counts as zeros; else the mean is over what lies inside x
};

/// The mean of each window, added in double. Gradient: grad / count to each element of it.
Tensor avg_pool2d(const Tensor& x, Pair kernel, AvgPool2dOptions options = {});

/// Means of H' x W' windows that cover x evenly: rows [i H / H', (i + 1) H / H') from rounded down to rounded up, columns
/// the same. (N, C, 1, 1) by default: the mean of the image. Gradient as avg_pool2d. Errors: also InvalidArgument for a size
/// below 1.
Tensor adaptive_avg_pool2d(const Tensor& x, Pair size = 1);

}  // namespace tessera
