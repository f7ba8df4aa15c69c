#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Share of the chosen rows whose largest score is at the label, in [0, 1]. scores (N, C) f32 or f64; labels i32 (N);
/// rows i32 (M), undefined: all. Ties go to the lowest class.
/// Errors: InvalidArgument for shapes, no row chosen, a row or a label out of range, naming the first.
double accuracy(const Tensor& scores, const Tensor& labels, const Tensor& rows = {});

}  // namespace tessera
