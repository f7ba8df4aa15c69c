#include "tessera/sparse/edge_plans.h"

#include <algorithm>

#include "tessera/core/parallel.h"
#include "tessera/scatter/segment_plan_state.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {
namespace {

/// i32 (E), by edge id: of(position, destination) of each edge.
template <class F>
Tensor by_id(const Graph& graph, const F& of) {
  Tensor out = Tensor::empty(Shape{graph.num_edges()}, DType::i32);
  int32_t* to = out.mutable_data<int32_t>();
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int64_t* id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  const int64_t grain = graph.num_dst() / (graph.num_edges() / (1 << 15) + 1) + 1;
  parallel_for(graph.num_dst(), grain, [=](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d)
      for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) to[id != nullptr ? id[k] : k] = of(k, d);
  });
  return out;
}

}  // namespace

SegmentPlan edges_by_dst(const Graph& graph) {
  return GraphState::of(graph).edge_plan.get([&] {
    return SegmentPlanState::of_ids(by_id(graph, [](int64_t, int64_t d) { return int32_t(d); }), graph.num_dst());
  });
}

SegmentPlan edges_by_src(const Graph& graph) {
  return GraphState::of(graph).other->edge_plan.get([&] {
    const int32_t* col = graph.col().data<int32_t>();
    return SegmentPlanState::of_ids(by_id(graph, [col](int64_t k, int64_t) { return col[k]; }), graph.num_src());
  });
}

}  // namespace tessera
