#pragma once

#include "tessera/core/random.h"
#include "tessera/sparse/graph.h"

namespace tessera {

/// A sparse matrix of values, such as bag-of-words node features: `pattern`'s destinations are the rows and its sources
/// the columns; `values` (E), by edge id.
struct SparseMatrix {
  Graph pattern;
  Tensor values;

  int64_t rows() const { return pattern.num_dst(); }
  int64_t columns() const { return pattern.num_src(); }
};

/// x w: x (N, K) sparse, w (K, F), out (N, F). Gradients to w and to x.values (at stored entries only).
/// Errors as `spmm`.
Tensor matmul(const SparseMatrix& x, const Tensor& w);

/// Dropout on the stored entries: what dropout on the dense matrix does to it, for the cost of the entries.
SparseMatrix dropout(const SparseMatrix& x, double p, Generator& generator);

}  // namespace tessera
