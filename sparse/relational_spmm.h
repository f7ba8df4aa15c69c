#pragma once

#include "tessera/core/tensor.h"
#include "tessera/scatter/reduce.h"
#include "tessera/sparse/relational_graph.h"

namespace tessera {

/// Message passing where every relation has a matrix of its own, as in R-GCN:
///
///     out[d] = sum over relations r of (reduce over edges s -> d of relation r of x[s]) weight[r]
///
/// reduce: sum, or mean by relation and destination. A destination without edges gets 0; a relation without edges takes no
/// part. x (num_src, K), weight (num_relations, K, N), out (num_dst, N); f32 or f64, all of one dtype.
/// Gradients: x and weight (zero for a relation without edges).
/// Rows are added up where they are narrower: before the product when K <= N, behind it otherwise. The same bits for every
/// thread count. Memory: relations are taken together as long as they have no more (relation, node) pairs than there are
/// nodes, so buffers stay within O(nodes (K + N)): never edges x K.
/// Errors: InvalidArgument for shapes and dtypes; Unsupported for other reductions or dtypes.
/// Source: Schlichtkrull et al., arXiv 1703.06103; schedule in sparse/relational_spmm.cpp.
Tensor relational_spmm(const RelationalGraph& graph, const Tensor& x, const Tensor& weight, Reduce reduce = Reduce::mean);

}  // namespace tessera
