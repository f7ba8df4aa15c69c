#pragma once

#include "tessera/layers/linear.h"
#include "tessera/scatter/reduce.h"
#include "tessera/sparse/graph.h"

namespace tessera {

struct SageConvOptions {
  Reduce aggregate = Reduce::mean;  ///< mean, sum, max or min
  bool project = false;             ///< relu(lin(x)) is what neighbours send
  bool root_weight = true;          ///< add lin_r of the node itself
  bool normalize = false;           ///< each row of the result to length 1
  bool bias = true;
};

/// GraphSAGE (Hamilton, Ying and Leskovec, arXiv 1706.02216):
///
///     out[d] = lin_l(reduce over edges s -> d of x[s]) + lin_r(x[d])
///
/// x (N, in), out (N, out); a node without edges aggregates to 0. Gradients: x and every parameter.
/// State and initial values are torch_geometric.nn.SAGEConv's: `lin_l.weight` (out, in), `lin_l.bias`, `lin_r.weight`, and
/// `lin.weight`, `lin.bias` (in, in) with `project`. Sum and mean aggregate on the narrower side of lin_l.
/// Errors: InvalidArgument for shapes; Unsupported for max and min of a sparse x without `project`.
struct SageConv {
  Linear lin, lin_l, lin_r;
  SageConvOptions options;

  SageConv() = default;
  SageConv(int64_t in, int64_t out, Generator& generator, SageConvOptions options = {});

  Tensor operator()(const Tensor& x, const Graph& graph) const { return (*this)(x, x, graph); }
  /// Sparse x: every product with it comes first, so that nothing of width `in` is made but by `project`.
  Tensor operator()(const SparseMatrix& x, const Graph& graph) const;
  /// Bipartite: x_src (num_src, in) sends, x_dst (num_dst, in) receives; undefined x_dst: no root term.
  Tensor operator()(const Tensor& x_src, const Tensor& x_dst, const Graph& graph) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lin", self.lin);
    visitor("lin_l", self.lin_l);
    visitor("lin_r", self.lin_r);
  }
};

}  // namespace tessera
