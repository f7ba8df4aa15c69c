#pragma once

#include <vector>

#include "tessera/core/tensor.h"

namespace tessera {

/// Where each graph of a batch of points begins, and the count of all: `node_offsets` checked against positions (N, D), or
/// {0, N} when it is undefined. For constructions of graphs from points.
/// Errors: InvalidArgument for a shape that does not fit, more than 2^31 - 1 points, a position that is not finite (naming
/// the first), offsets that do not start at 0, fall or do not end at N; Unsupported for other dtypes than f32 and f64.
std::vector<int64_t> node_offsets_of(const char* op, const Tensor& positions, const Tensor& node_offsets);

}  // namespace tessera
