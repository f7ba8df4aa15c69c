#include "tessera/sparse/graph_batch.h"

#include <algorithm>
#include <limits>

#include "tessera/sparse/graph_state.h"

namespace tessera {

GraphBatch GraphBatch::from_graphs(std::span<const Graph> graphs) {
  const int64_t count = int64_t(graphs.size());
  Tensor node_offsets = Tensor::empty(Shape{count + 1}, DType::i64),
         edge_offsets = Tensor::empty(Shape{count + 1}, DType::i64);
  int64_t *nodes = node_offsets.mutable_data<int64_t>(), *edges = edge_offsets.mutable_data<int64_t>();
  nodes[0] = edges[0] = 0;
  bool in_order = true;
  for (int64_t g = 0; g < count; ++g) {
    const Graph& graph = graphs[size_t(g)];
    check(graph.defined() && graph.num_src() == graph.num_dst(), "graph_batch: graph {} needs to be square", g);
    nodes[g + 1] = nodes[g] + graph.num_dst();
    edges[g + 1] = edges[g] + graph.num_edges();
    in_order = in_order && !graph.edge_id().defined();
  }
  check(nodes[count] <= std::numeric_limits<int32_t>::max(), "graph_batch: {} nodes in all are more than 2147483647",
        nodes[count]);

  Tensor rowptr = Tensor::empty(Shape{nodes[count] + 1}, DType::i64), col = Tensor::empty(Shape{edges[count]}, DType::i32);
  Tensor edge_id = in_order ? Tensor() : Tensor::empty(Shape{edges[count]}, DType::i64);
  int64_t* rows = rowptr.mutable_data<int64_t>();
  int32_t* cols = col.mutable_data<int32_t>();
  int64_t* ids = in_order ? nullptr : edge_id.mutable_data<int64_t>();
  rows[0] = 0;
  for (int64_t g = 0; g < count; ++g) {
    const Graph& graph = graphs[size_t(g)];
    const int64_t n = graph.num_dst(), m = graph.num_edges(), first = edges[g];
    const int64_t* from_rows = graph.rowptr().data<int64_t>();
    const int32_t* from_cols = graph.col().data<int32_t>();
    for (int64_t i = 1; i <= n; ++i) rows[nodes[g] + i] = first + from_rows[i];
    for (int64_t k = 0; k < m; ++k) cols[first + k] = from_cols[k] + int32_t(nodes[g]);
    if (ids == nullptr) continue;
    const int64_t* from_ids = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
    for (int64_t k = 0; k < m; ++k) ids[first + k] = first + (from_ids != nullptr ? from_ids[k] : k);
  }
  return {GraphState::make(nodes[count], nodes[count], rowptr, col, edge_id), edge_offsets,
          SegmentPlan::from_offsets(node_offsets)};
}

Graph GraphBatch::at(int64_t g) const {
  check(g >= 0 && g < num_graphs(), "graph_batch: graph {} is outside [0, {})", g, num_graphs());
  const int64_t* first_of = node_offsets().data<int64_t>();
  const int64_t first_node = first_of[g], n = first_of[g + 1] - first_node;
  const int64_t first_edge = edge_offsets.data<int64_t>()[g], m = edge_offsets.data<int64_t>()[g + 1] - first_edge;
  Tensor rowptr = Tensor::empty(Shape{n + 1}, DType::i64), col = Tensor::empty(Shape{m}, DType::i32), edge_id;
  const int64_t* from_rows = graph.rowptr().data<int64_t>() + first_node;
  const int32_t* from_cols = graph.col().data<int32_t>() + first_edge;
  int64_t* rows = rowptr.mutable_data<int64_t>();
  int32_t* cols = col.mutable_data<int32_t>();
  for (int64_t i = 0; i <= n; ++i) rows[i] = from_rows[i] - first_edge;
  for (int64_t k = 0; k < m; ++k) cols[k] = from_cols[k] - int32_t(first_node);
  if (graph.edge_id().defined()) {
    edge_id = Tensor::empty(Shape{m}, DType::i64);
    const int64_t* from_ids = graph.edge_id().data<int64_t>() + first_edge;
    std::transform(from_ids, from_ids + m, edge_id.mutable_data<int64_t>(), [=](int64_t id) { return id - first_edge; });
  }
  return GraphState::make(n, n, rowptr, col, edge_id);
}

}  // namespace tessera
