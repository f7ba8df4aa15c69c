#include "tessera/sparse/sparse_matrix.h"

#include "tessera/core/ops/dropout.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

Tensor matmul(const SparseMatrix& x, const Tensor& w) { return spmm(x.pattern, w, Reduce::sum, {.weight = x.values}); }

SparseMatrix dropout(const SparseMatrix& x, double p, Generator& generator) {
  return {x.pattern, dropout(x.values, p, generator)};
}

}  // namespace tessera
