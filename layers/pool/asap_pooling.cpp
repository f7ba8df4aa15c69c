#include "tessera/layers/pool/asap_pooling.h"

#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/core/ops/index.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/scatter/segment_softmax.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/sparse/spgemm.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

/// The edges, by id, of each destination.
SegmentPlan edges_by_destination(const Graph& graph) {
  Tensor destination = Tensor::empty(Shape{graph.num_edges()}, DType::i32);
  int32_t* to = destination.mutable_data<int32_t>();
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int64_t* id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  for (int64_t d = 0; d < graph.num_dst(); ++d)
    for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) to[id != nullptr ? id[k] : k] = int32_t(d);
  return SegmentPlan::from_index(destination, graph.num_dst());
}

/// S^T by its chosen rows: the edges that end at each of `perm`, with their scores.
SparseMatrix chosen_rows(const Graph& graph, const Tensor& score, const Tensor& perm) {
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  std::vector<int64_t> rows = {0}, ids;
  std::vector<int32_t> columns;
  for (const int64_t d : perm.span<int64_t>()) {
    for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) {
      columns.push_back(col[k]);
      ids.push_back(id != nullptr ? id[k] : k);
    }
    rows.push_back(int64_t(columns.size()));
  }
  const int64_t entries = int64_t(ids.size());
  return {Graph::from_csr(Tensor::from(rows, {int64_t(rows.size())}), Tensor::from(columns, {entries}), graph.num_src()),
          index_select(score, Tensor::from(ids, {entries}))};
}

/// The graph with an edge from i to j for each entry (i, j) that is not on the diagonal, in their order.
void without_loops(const SparseMatrix& m, Coarsened& out) {
  const int64_t* rowptr = m.pattern.rowptr().data<int64_t>();
  const int32_t* col = m.pattern.col().data<int32_t>();
  std::vector<int32_t> src, dst;
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < m.rows(); ++i)
    for (int64_t k = rowptr[i]; k < rowptr[i + 1]; ++k) {
      if (col[k] == i) continue;
      src.push_back(int32_t(i));
      dst.push_back(col[k]);
      kept.push_back(k);
    }
  const int64_t edges = int64_t(kept.size());
  out.graph = Graph::from_coo(Tensor::from(src, {edges}), Tensor::from(dst, {edges}), m.rows(), m.rows());
  if (out.edge_weight.defined()) out.edge_weight = index_select(out.edge_weight, Tensor::from(kept, {edges}));
}

void with_loops(const SparseMatrix& m, Coarsened& out) {
  const LoopedGraph looped = add_remaining_self_loops(m.pattern.transpose(), out.edge_weight);
  out.graph = looped.graph;
  out.edge_weight = looped.weight;
}

}  // namespace

Coarsened pool_by_clusters(const Tensor& x, const Tensor& x_pool, const LoopedGraph& looped, const SegmentPlan& nodes,
                           const Linear& lin, const Linear& att, const LeConv& gnn_score, const Tensor& select,
                           const AsapOptions& options, Generator* generator) {
  const Graph& graph = looped.graph;
  const int64_t count = x.dim(0), channels = x.dim(1);
  // att(m[d] | h[s]) is a sum of what either side adds.
  const Tensor middle = lin(spmm(graph, x_pool, Reduce::max));
  const Tensor of_middle = matmul(middle, slice(att.weight, 1, 0, channels), {.transpose_b = true});
  const Tensor of_node =
      matmul(x_pool, slice(att.weight, 1, channels, 2 * channels), {.transpose_b = true, .bias = att.bias});
  Tensor score = leaky_relu(sddmm(graph, EdgeOp::add, of_middle, of_node), options.negative_slope);
  score = reshape(segment_softmax(score, edges_by_destination(graph)), Shape{graph.num_edges()});
  if (generator != nullptr && options.dropout > 0) score = dropout(score, options.dropout, *generator);

  const Tensor clusters = spmm(graph, x, Reduce::sum, {.weight = score});
  const Tensor fitness = reshape(sigmoid(gnn_score(clusters, graph)), Shape{count});
  Coarsened out;
  {
    const NoGrad off;
    const Selection chosen =
        select_top(tanh(div(mul(fitness, reshape(select, Shape{1})), norm(select))), nodes, options.ratio);
    out.perm = chosen.perm;
    out.nodes = chosen.nodes;
  }
  out.x = mul(index_select(clusters, out.perm), reshape(index_select(fitness, out.perm), Shape{out.perm.numel(), 1}));

  const bool weighted = looped.weight.defined();
  const SparseMatrix left = chosen_rows(graph, weighted ? score : score.detach(), out.perm);
  const SparseMatrix coarse =
      spgemm(left, spgemm({graph.transpose(), looped.weight}, {left.pattern.transpose(), left.values}));
  if (weighted) out.edge_weight = coarse.values;
  options.add_self_loops ? with_loops(coarse, out) : without_loops(coarse, out);
  return out;
}

}  // namespace tessera
