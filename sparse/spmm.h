#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/reduce.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct SpmmOptions {
  Tensor weight;     ///< (E), by edge id; undefined: every edge counts 1
  Tensor src_scale;  ///< (num_src), factor of each source's row; no gradient
  Tensor dst_scale;  ///< (num_dst), factor of each result row; no gradient
};

/// Sparse matrix times dense matrix, with a reduction: what message passing does when the message is the source's row.
///
///     out[d] = dst_scale[d] * reduce over edges e = (s -> d) of weight[e] * src_scale[s] * x[s]
///
/// reduce: sum, or mean (the sum divided by the number of edges of the row, weighted or not). An empty row gives 0.
/// x (num_src, F), f32 or f64; out (num_dst, F), same dtype. All factors have x's dtype.
/// Gradients: x (by the cached transpose, no atomics) and weight (one dot product per edge). No E x F buffer either way.
/// The same bits for every thread count: a row is summed in its own order, a row of more than 4096 edges in pieces of
/// 4096 that are added in order.
/// Errors: InvalidArgument for shapes and dtypes, naming them; Unsupported for other reductions or dtypes.
/// Schedule and sources: sparse/spmm_cpu.cpp.
Tensor spmm(const Graph& graph, const Tensor& x, Reduce reduce = Reduce::sum, const SpmmOptions& options = {});

}  // namespace tessera
