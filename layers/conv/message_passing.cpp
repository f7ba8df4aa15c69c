#include "tessera/layers/conv/message_passing.h"

#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/edge_plans.h"
#include "tessera/sparse/sddmm.h"

namespace tessera {

EdgeRows::EdgeRows(const Graph& graph, const Tensor& x_src, const Tensor& x_dst, const Tensor& edge_attr)
    : graph_(graph), x_src_(x_src), x_dst_(x_dst), edge_attr_(edge_attr) {
  check(x_src.ndim() >= 1 && x_src.dim(0) == graph.num_src(), "message_passing: x has shape {} but the graph has {} sources",
        x_src.shape(), graph.num_src());
  check(x_dst.ndim() >= 1 && x_dst.dim(0) == graph.num_dst(),
        "message_passing: x_dst has shape {} but the graph has {} destinations", x_dst.shape(), graph.num_dst());
  if (!edge_attr.defined()) return;
  check(edge_attr.ndim() >= 1 && edge_attr.dim(0) == graph.num_edges(),
        "message_passing: edge_attr has shape {} but the graph has {} edges", edge_attr.shape(), graph.num_edges());
}

Tensor EdgeRows::x_j() const { return gather(x_src_, edges_by_src(graph_)); }

Tensor EdgeRows::x_i() const { return gather(x_dst_, edges_by_dst(graph_)); }

Tensor EdgeRows::difference() const {  // along the transpose, where what is subtracted from is the source
  return sddmm(graph_.transpose(), EdgeOp::sub, x_src_, x_dst_);
}

Tensor Aggregation::operator()(const Tensor& messages, const Graph& graph) const {
  check(messages.defined() && messages.ndim() >= 1 && messages.dim(0) == graph.num_edges(),
        "message_passing: the messages have shape {} but the graph has {} edges",
        messages.defined() ? to_text(messages.shape()) : "undefined", graph.num_edges());
  const SegmentPlan plan = edges_by_dst(graph);
  return function_ ? function_(messages, plan) : segment_reduce(messages, plan, reduce_);
}

Tensor pass_messages(const EdgeRows& rows, const std::function<Tensor(const EdgeRows&)>& message,
                     const Aggregation& aggregate) {
  return aggregate(message(rows), rows.graph());
}

}  // namespace tessera
