#pragma once

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/tensor.h"
#include "tessera/scatter/reduce.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct SpmmOptions {
  Tensor weight;     ///< (E) or, one for each head, (E, H); by edge id; undefined: every edge counts 1
  Tensor src_scale;  ///< (num_src), factor of each source's row; no gradient
  Tensor dst_scale;  ///< (num_dst), factor of each result row; no gradient
  Tensor bias{};     ///< (F), added to each row of the result, also to empty ones; undefined: none
  Activation activation = Activation::none;  ///< none or relu, after the bias
};

/// Sparse matrix times dense matrix, with a reduction: what message passing does when the message is the source's row.
///
///     out[d] = activation(dst_scale[d] * reduce over edges e = (s -> d) of weight[e] * src_scale[s] * x[s] + bias)
///
/// reduce: sum, mean (the sum divided by the number of edges of the row, weighted or not), max or min. An empty row gives
/// activation(bias), without them 0. With weights per head, the columns of x are shared out in order: head h has the F / H
/// columns from h F / H on.
/// x (num_src, F), f32, f64, bf16 or f16, or (num_src, H, C) with F = H C; out the same with num_dst rows. weight, scales
/// and bias have the type that is computed in: f64 for an f64 x, else f32. 16-bit rows are added and compared in f32 and
/// rounded once.
/// Gradients: x, weight and bias, each in its own dtype; at a relu's 0 there is none. No E x F buffer either way. Of a sum
/// or mean x's comes by the cached transpose, weight's is one dot product per edge and head (16-bit rows are widened for
/// it). Of a maximum or minimum the edge that won an element gets its whole gradient: among equal messages the lowest edge
/// id, whatever the order of the row; NaN wins over numbers; an empty row has no winner.
/// Memory: out; for max and min, only when a gradient will be wanted, 4 bytes an element to remember the winners.
/// The same bits for every thread count: a row is summed in its own order, a row of more than 4096 edges in pieces of
/// 4096 that are added in order.
/// Errors: InvalidArgument for shapes and dtypes, naming them; Unsupported for reduce mul, other dtypes, other activations,
/// and max or min of a row of more than 2^31 - 1 edges.
/// Schedule and sources: sparse/spmm_cpu.cpp, spmm_max_cpu.cpp, spmm_half_cpu.cpp, spmm_heads_cpu.cpp.
Tensor spmm(const Graph& graph, const Tensor& x, Reduce reduce = Reduce::sum, const SpmmOptions& options = {});

}  // namespace tessera
