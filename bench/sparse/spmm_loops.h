#pragma once

#include <cstdint>

/// Plain loops that spmm is measured against, compiled for this machine.
namespace tessera::bench {

/// How many edges ahead rows are prefetched (0: not), and into which level of cache: 1 or 2.
struct Prefetch {
  int64_t ahead;
  int level;
};

/// Reads row col[j] of x into registers and adds it to registers, for all j: what any sum over edges must do at least.
/// No rows, no output. Widths up to 256 run in one pass, others in passes of 256.
void gather_rows(const float* x, int64_t width, const int32_t* col, int64_t count, Prefetch prefetch);

/// The shape of PyTorch's current CPU kernel (aten SpmmReduceKernel.cpp): int64 indices, a value per edge although all are
/// one, zero-filled output, each edge loads and stores the whole output row; rows are shared out by number of edges.
void torch_shaped_spmm(const int64_t* rowptr, const int64_t* col, const float* values, const float* x, int64_t rows,
                       int64_t width, float* out);

/// The shape of its maximum when a gradient will be wanted: rows shared out evenly, one column at a time, an int64 place of
/// the winner beside each result, both filled before. `arg` holds `edges` where a row is empty.
void torch_shaped_max(const int64_t* rowptr, const int64_t* col, const float* values, const float* x, int64_t rows,
                      int64_t width, float* out, int64_t* arg);

/// The shape of the way back: gradients times values and rows of the winners into two rows x width arrays by all threads,
/// then added to x_grad (num_src x width) on one.
void torch_shaped_max_backward(const int64_t* col, const float* values, const float* grad, const int64_t* arg, int64_t edges,
                               int64_t rows, int64_t num_src, int64_t width, float* x_grad);

/// The shape of a sum's way back: the transpose, made anew for every call, then the forward loop over it. One counting sort
/// on one thread stands for its argsort of edges, which takes longer.
void torch_shaped_sum_backward(const int64_t* rowptr, const int64_t* col, const float* values, const float* grad,
                               int64_t rows, int64_t num_src, int64_t width, float* x_grad);

/// Weights per head, as a loop over rows, edges, heads and columns: DGL's kernel for operands that are broadcast.
void plain_heads(const int64_t* rowptr, const int64_t* col, const float* weight, const float* x, int64_t rows, int64_t heads,
                 int64_t columns, float* out);

/// The shape of PyTorch's sampled_addmm on CPU: edges shared out evenly, the row of each from an int64 list, one dot
/// product per edge, nothing kept from edge to edge. out is by position.
void torch_shaped_sddmm(const int64_t* row, const int64_t* col, const float* a, const float* b, int64_t count, int64_t width,
                        float* out);

/// An edge list to compressed rows by one counting sort on one thread.
void plain_rows(const int32_t* src, const int32_t* dst, int64_t count, int64_t rows, int64_t* rowptr, int32_t* col,
                int64_t* edge_id);

}  // namespace tessera::bench
