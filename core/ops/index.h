#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Rows of x by number: out[i] = x[ids[i]]; x (N, ...) of any dtype, ids i32 or i64 (M); out (M, ...).
/// Gradient (floating dtypes f32, f64): each row's is the sum over the places where it was taken, in their order; zero for
/// the others. Errors: InvalidArgument for an id outside [0, N), naming the first and its position.
Tensor index_select(const Tensor& x, const Tensor& ids);

/// (M, classes) with 1 at ids[i] of row i, else 0; ids i32 or i64 (M). No gradient.
/// Errors: InvalidArgument for an id outside [0, classes), naming the first.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = DType::f32);

/// out[.., i, ..] = sum of x[.., j, ..] over j <= i along `dim`; f32, f64, i32 or i64; f32 is added in double.
/// Gradient: the same sum of grad, from the end.
Tensor cumsum(const Tensor& x, int dim = 0);

}  // namespace tessera
