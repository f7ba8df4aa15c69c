#include "tessera/sparse/subgraph.h"

#include <algorithm>

#include "tessera/core/storage.h"
#include "tessera/scatter/ids.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {

Subgraph induced_subgraph(const Graph& graph, const Tensor& nodes) {
  check(graph.defined() && graph.num_src() == graph.num_dst(), "induced_subgraph: the graph needs to be square");
  check_id_list("induced_subgraph", "nodes", nodes);
  const int64_t num_nodes = graph.num_src(), kept = nodes.numel();
  const Tensor ids = narrow_ids("induced_subgraph", "nodes", nodes, num_nodes);
  const int32_t* id = ids.data<int32_t>();
  Scratch<int32_t> place(num_nodes);  // of each node of the graph among the chosen, -1 for the others
  std::fill_n(place.data(), num_nodes, -1);
  for (int64_t i = 0; i < kept; ++i) {
    check(place[id[i]] < 0, "induced_subgraph: nodes holds {} twice, at positions {} and {}", id[i], place[id[i]], i);
    place[id[i]] = int32_t(i);
  }

  // Rows in the chosen order; an edge's new id is its rank among the edges that stay.
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  Scratch<int64_t> rank(graph.num_edges() + 1);
  std::fill_n(rank.data(), graph.num_edges() + 1, 0);
  Tensor new_rowptr = Tensor::empty(Shape{kept + 1}, DType::i64);
  int64_t* new_rows = new_rowptr.mutable_data<int64_t>();
  int64_t count = 0;
  for (int64_t i = 0; i < kept; ++i) {
    new_rows[i] = count;
    for (int64_t k = rowptr[id[i]]; k < rowptr[id[i] + 1]; ++k) {
      if (place[col[k]] < 0) continue;
      rank[edge_id != nullptr ? edge_id[k] : k] = 1;
      ++count;
    }
  }
  new_rows[kept] = count;
  Subgraph out{{}, Tensor::empty(Shape{count}, DType::i64)};
  int64_t* from = out.edge_id.mutable_data<int64_t>();
  for (int64_t e = 0, next = 0; e <= graph.num_edges(); ++e) {
    const bool stays = rank[e] != 0;
    rank[e] = next;
    if (stays) from[next++] = e;
  }
  Tensor new_col = Tensor::empty(Shape{count}, DType::i32), new_edge_id = Tensor::empty(Shape{count}, DType::i64);
  int32_t* new_cols = new_col.mutable_data<int32_t>();
  int64_t* new_ids = new_edge_id.mutable_data<int64_t>();
  int64_t at = 0;
  for (int64_t i = 0; i < kept; ++i)
    for (int64_t k = rowptr[id[i]]; k < rowptr[id[i] + 1]; ++k) {
      if (place[col[k]] < 0) continue;
      new_cols[at] = place[col[k]];
      new_ids[at++] = rank[edge_id != nullptr ? edge_id[k] : k];
    }
  out.graph = GraphState::make(kept, kept, new_rowptr, new_col, new_edge_id);
  return out;
}

}  // namespace tessera
