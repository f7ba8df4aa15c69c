#pragma once

#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"

namespace tessera {

/// One dot product per edge (sampled dense times dense):
///
///     out[e] = sum over f of a_dst[d, f] * b_src[s, f]     for edge e = (s -> d)
///
/// out is in the order of edge ids; F = 0 gives 0.
/// a_dst (num_dst, F), b_src (num_src, F), f32 or f64, the same; out (E).
/// Gradients: a_dst and b_src, by spmm with the edges' gradients as weights. No E x F buffer.
/// The same bits for every thread count. Errors: InvalidArgument for shapes and dtypes, naming them; Unsupported for other
/// dtypes. Schedule: sparse/sddmm_cpu.cpp.
Tensor sddmm_dot(const Graph& graph, const Tensor& a_dst, const Tensor& b_src);

/// The same head by head, F = heads x C, head h being columns [h C, (h + 1) C): out (E, heads).
/// Gradients as there. Errors: InvalidArgument unless heads divides F as well.
Tensor sddmm_dot(const Graph& graph, const Tensor& a_dst, const Tensor& b_src, int64_t heads);

enum class EdgeOp : uint8_t { add, sub, mul };

/// A row per edge, made of the rows at its ends:
///
///     out[e, f] = a_dst[d, f] op b_src[s, f]              for edge e = (s -> d)
///
/// out (E, F) is in the order of edge ids. a_dst (num_dst, F), b_src (num_src, F), f32 or f64, the same.
/// Gradients: a_dst and b_src, each the sum over a node's edges of grad[e] (mul: times the other side's row), pulled along
/// the graph and its transpose: no atomics, no second E x F buffer, 0 for a node without edges.
/// The same bits for every thread count. Errors as `sddmm_dot`.
Tensor sddmm(const Graph& graph, EdgeOp op, const Tensor& a_dst, const Tensor& b_src);

/// The dot products of `sddmm_dot` for backward passes: no checks, no history, each dot product times src_scale[s] and
/// dst_scale[d] where defined, and divided by the number of edges of the row for a mean.
Tensor scaled_dots(const Graph& graph, const Tensor& a_dst, const Tensor& b_src, bool mean, const Tensor& src_scale,
                   const Tensor& dst_scale);

}  // namespace tessera
