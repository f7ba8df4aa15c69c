#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/reduce.h"
#include "tessera/scatter/segment_reduce.h"

namespace tessera {

/// Rows of src reduced to where an index sends them:
///
///     out[s] = reduce over rows e with index[e] = s of src[e]
///
/// All else as in `segment_reduce`: empty slots, initial content, winners, dtypes, gradients and ties, determinism.
/// src (E, ...); index i32 or i64 (E); out (size, ...). No atomics. A sum or mean of f32 or f64 adds the rows up in their
/// own order; all else sorts the index, on every call. An index that is used again for a maximum, or for the gradient of a
/// `gather`, is better kept as a SegmentPlan, for `segment_reduce`.
/// Memory: out; where the index is sorted 12 bytes per row (twice that meanwhile); never a copy of src.
/// Errors: InvalidArgument naming the first id outside [0, size) and its position, and for shapes and dtypes; Unsupported as
/// there.
Tensor scatter_reduce(const Tensor& src, const Tensor& index, int64_t size, Reduce reduce = Reduce::sum,
                      const SegmentReduceOptions& options = {});

/// The same along any dimension, each element by an index of its own; in three dimensions and along the second
///
///     out[i, s, k] = reduce over all j with index[i, j, k] = s of src[i, j, k]
///
/// index has src's shape, out src's with `size` in dimension `dim` (negative: from the last). A winner is the j that an
/// element came from. Elements are taken in the order of j, one thread to a line of them.
/// Memory: 4 bytes an element of out and, for 16-bit types, 4 more; the gradient of mul as much as out.
/// Errors: InvalidArgument naming the first id outside [0, size) and its position in row-major order, and for shapes and
/// dtypes; Unsupported for dtypes and a dimension of more than 2^31 - 1.
Tensor scatter_reduce_along(const Tensor& src, const Tensor& index, int dim, int64_t size, Reduce reduce = Reduce::sum,
                            const SegmentReduceOptions& options = {});

}  // namespace tessera
