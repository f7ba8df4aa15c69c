#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "tessera/core/tensor.h"

/// Elements put elsewhere, their values unchanged: any dtype; gradients (of floating dtypes) go back where they came from.
/// A negative dimension counts from the last. Errors: InvalidArgument "<op>: dimension 2 does not exist in shape [4, 3]".
namespace tessera {

/// The same array under another shape of equal numel, without a copy.
Tensor reshape(const Tensor& x, const Shape& shape);

/// Elements [begin, end) of dimension `dim`: a view for dimension 0, a copy otherwise.
/// Errors: InvalidArgument unless 0 <= begin <= end <= size.
Tensor slice(const Tensor& x, int dim, int64_t begin, int64_t end);

/// Two dimensions exchanged.
Tensor transpose(const Tensor& x, int dim0, int dim1);
/// (N, M) from x (M, N).
Tensor transpose(const Tensor& x);

/// Dimension i of the result is dimension order[i] of x. Errors: InvalidArgument unless `order` is a permutation.
Tensor permute(const Tensor& x, std::initializer_list<int> order);

/// Repeated as broadcasting does: aligned at the last dimension, sizes of 1 and absent ones become the shape's.
/// The same tensor when it has that shape. Gradient: the sum over what was repeated. Errors: InvalidArgument otherwise.
Tensor expand(const Tensor& x, const Shape& shape);

/// Backwards along `dim`.
Tensor flip(const Tensor& x, int dim);

/// One after another along `dim`; at least one, all other sizes and the dtype equal (InvalidArgument otherwise).
Tensor concat(std::span<const Tensor> parts, int dim = 0);
Tensor concat(std::initializer_list<Tensor> parts, int dim = 0);

/// Of equal shapes, side by side along a new dimension `dim` of the result.
Tensor stack(std::span<const Tensor> parts, int dim = 0);
Tensor stack(std::initializer_list<Tensor> parts, int dim = 0);

/// `count` equal slices of `dim`. Errors: InvalidArgument when count does not divide its size.
std::vector<Tensor> split(const Tensor& x, int64_t count, int dim = 0);

}  // namespace tessera
