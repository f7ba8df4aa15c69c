#include "tessera/layers/pool/dense_batch.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/scatter/scatter_reduce.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

int64_t nodes_of_each(const char* who, const SegmentPlan& nodes, int64_t max_nodes) {
  check(nodes.defined(), "{}: nodes is undefined", who);
  check(max_nodes >= 0, "{}: max_nodes is {} but needs to be 0 or more", who, max_nodes);
  if (max_nodes > 0) return max_nodes;
  int64_t largest = 0;
  const int64_t* offsets = nodes.offsets().data<int64_t>();
  for (int64_t g = 0; g < nodes.num_segments(); ++g) largest = std::max(largest, offsets[g + 1] - offsets[g]);
  return largest;
}

}  // namespace

DenseBatch to_dense_batch(const Tensor& x, const SegmentPlan& nodes, int64_t max_nodes) {
  const int64_t each = nodes_of_each("to_dense_batch", nodes, max_nodes), graphs = nodes.num_segments();
  check(x.defined() && x.ndim() == 2 && x.dim(0) == nodes.num_rows(),
        "to_dense_batch: x needs to be [{}, C], a row for each of nodes", nodes.num_rows());
  check(graphs * each <= std::numeric_limits<int32_t>::max(), "to_dense_batch: {} graphs of {} nodes are more than 2^31 - 1",
        graphs, each);
  // A product with one entry in each slot that a node fills: a copy that also knows its way back.
  const int64_t* offsets = nodes.offsets().data<int64_t>();
  const int64_t* order = nodes.order().defined() ? nodes.order().data<int64_t>() : nullptr;
  std::vector<int64_t> rows = {0};
  std::vector<int32_t> taken;
  Tensor mask = zeros(Shape{graphs, each});
  for (int64_t g = 0; g < graphs; ++g)
    for (int64_t i = 0; i < each; ++i) {
      if (offsets[g] + i < offsets[g + 1]) {
        taken.push_back(int32_t(order != nullptr ? order[offsets[g] + i] : offsets[g] + i));
        mask.mutable_data<float>()[g * each + i] = 1;
      }
      rows.push_back(int64_t(taken.size()));
    }
  const Graph slots =
      Graph::from_csr(Tensor::from(rows, {int64_t(rows.size())}), Tensor::from(taken, {int64_t(taken.size())}), x.dim(0));
  return {reshape(spmm(slots, x), Shape{graphs, each, x.dim(1)}), cast(mask, x.dtype())};
}

Tensor to_dense_adj(const Graph& graph, const SegmentPlan& nodes, const Tensor& edge_weight, int64_t max_nodes) {
  const int64_t each = nodes_of_each("to_dense_adj", nodes, max_nodes), graphs = nodes.num_segments();
  check(graph.defined() && graph.num_src() == graph.num_dst() && graph.num_src() == nodes.num_rows(),
        "to_dense_adj: the graph needs to be square, with {} nodes", nodes.num_rows());
  const int64_t edges = graph.num_edges();
  if (edge_weight.defined())
    check(edge_weight.ndim() == 1 && edge_weight.dim(0) == edges,
          "to_dense_adj: edge_weight has shape {} but needs to be [{}]", edge_weight.shape(), edges);
  const Tensor segments = nodes.segment_of_row();
  const int32_t* of = segments.data<int32_t>();
  const int64_t* offsets = nodes.offsets().data<int64_t>();
  std::vector<int64_t> place(static_cast<size_t>(nodes.num_rows()));  // of each node within its graph
  for (int64_t g = 0, k = 0; g < graphs; ++g)
    for (; k < offsets[g + 1]; ++k)
      place[size_t(nodes.order().defined() ? nodes.order().data<int64_t>()[k] : k)] = k - offsets[g];

  std::vector<int64_t> target(static_cast<size_t>(edges)), beyond;
  const int64_t total = graphs * each * each;
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  for (int64_t d = 0; d < graph.num_dst(); ++d)
    for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) {
      const int64_t e = graph.edge_id().defined() ? graph.edge_id().data<int64_t>()[k] : k, s = col[k];
      check(of[s] == of[d], "to_dense_adj: edge {} joins node {} of graph {} to node {} of graph {}", e, s, of[s], d, of[d]);
      const bool inside = place[size_t(s)] < each && place[size_t(d)] < each;
      target[size_t(e)] = inside ? (of[s] * each + place[size_t(s)]) * each + place[size_t(d)] : total;
    }
  const Tensor weight = edge_weight.defined() ? edge_weight : ones(Shape{edges});
  const Tensor sums = scatter_reduce(weight, Tensor::from(target, {edges}), total + 1);  // the last takes those left out
  return reshape(slice(sums, 0, 0, total), Shape{graphs, each, each});
}

}  // namespace tessera
