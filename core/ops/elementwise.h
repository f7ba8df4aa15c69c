#pragma once

#include "tessera/core/ops/unary.h"

/// Element by element, of two tensors or more; f32 and f64, and bf16 and f16 as storage (computed in f32, rounded once; so
/// are gradients, sums over what was repeated included); all of one dtype. Shapes broadcast as
/// NumPy's do: aligned at the last dimension, a dimension that is absent or 1 is repeated. Equal shapes, a scalar, a row
/// [F] or a column [N, 1] beside [N, F] are walked without a copy. A gradient is summed over what was repeated, in a
/// fixed tree.
/// Errors: InvalidArgument naming both shapes when they do not broadcast, or both dtypes when they differ.
namespace tessera {

/// Whether `a` and `b` broadcast; if so, `joined` is the shape that they give.
bool broadcasts(const Shape& a, const Shape& b, Shape& joined);
/// That shape. Errors: InvalidArgument "<op>: a has shape [2] but b has shape [3]".
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

/// a + b, a - b, a * b, a / b. Gradients to both.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);

/// The smaller or larger; NaN wins. Gradient: to the one that was taken, to `a` on a tie.
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);

/// 1 where true, else 0, as u8; also i32 and i64; a NaN is unequal to everything. No gradient.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);

/// a where `condition` (u8) is not 0, else b; also i32 and i64. What is not taken has no influence, NaN included.
/// Gradients: grad where taken, else 0.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

/// a += b without recording; equal shapes. Errors: InvalidArgument when `a` was computed with a gradient to follow.
void add_in_place(Tensor& a, const Tensor& b);

/// x[i, j] + bias[j]; x (N, F), bias (F). Gradients: grad, and its sum over rows in a fixed tree.
Tensor add_bias(const Tensor& x, const Tensor& bias);

}  // namespace tessera
