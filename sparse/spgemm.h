#pragma once

#include "tessera/sparse/sparse_matrix.h"

namespace tessera {

/// Sparse matrix times sparse matrix:
///
///     out[i, j] = sum over k of a[i, k] b[k, j]
///
/// a (I, K), b (K, J), out (I, J). Entries of one place add up. The result has an entry wherever some a[i, k] and b[k, j]
/// are stored, whatever their values, rows in order, columns ascending, ids by place; a row without such pairs is empty.
/// values f32 or f64 (E), the same in both; f32 is added in double and rounded once. Undefined values are 1 each: those of
/// both undefined give f32.
/// Gradients: a.values and b.values, at their own entries only.
/// Time: the pairs (k, j) met, forward and for each gradient. Memory: out, twice for a moment, and for each thread J doubles
/// (I for b's gradient). The same bits for every thread count.
/// Errors: InvalidArgument for shapes and dtypes; Unsupported for other dtypes.
/// Gustavson, ACM Trans. Math. Softw. 4 (1978).
SparseMatrix spgemm(const SparseMatrix& a, const SparseMatrix& b);

}  // namespace tessera
