#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include "tessera/scatter/reduce.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"

/// Layers with a message function of your own:
///
///     out[d] = update(aggregate over edges e = (s -> d) of message(x[d], x[s], edge_attr[e]), x[d])
///
/// A layer that weighs what a neighbour sends by how alike both ends are, and adds the node itself:
///
///     struct AlikeConv {
///       Linear lin;
///       Tensor operator()(const Tensor& x, const Graph& graph) const {
///         const auto message = [](const EdgeRows& e) {
///           return mul(e.x_j(), exp(neg(sum(square(sub(e.x_i(), e.x_j())), 1, true))));
///         };
///         const auto update = [&](const Tensor& received, const Tensor& own) { return lin(add(received, own)); };
///         return MessagePassing{message, Reduce::mean, update}(x, graph);
///       }
///       ... visit, as every module
///     };
///
/// Messages are (E, ..) by edge id: E x F buffers that the layers on `spmm`, `edge_attention` or `sddmm` do without; so
/// what one node's rows decide alone (a matrix, an activation) is better done to x before.
namespace tessera {

/// What a message function sees: the rows at both ends of every edge, by edge id. Gathered on demand, by plans that are
/// kept with the graph.
class EdgeRows {
 public:
  /// Of x_src (num_src, ..) and x_dst (num_dst, ..). Errors: InvalidArgument for other row counts, also of edge_attr.
  EdgeRows(const Graph& graph, const Tensor& x_src, const Tensor& x_dst, const Tensor& edge_attr);

  Tensor x_j() const;         ///< (E, ..): rows of the sources. Gradient: x_src
  Tensor x_i() const;         ///< (E, ..): rows of the destinations. Gradient: x_dst
  Tensor difference() const;  ///< x_j - x_i in one pass; both (.., F), f32 or f64
  const Tensor& edge_attr() const { return edge_attr_; }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  Tensor x_src_, x_dst_, edge_attr_;
};

/// How messages (E, ..) become rows (num_dst, ..): a Reduce, or a function of the messages and their plan
/// (`edges_by_dst`), such as `[](const Tensor& m, const SegmentPlan& p) { return segment_std(m, p); }`.
class Aggregation {
 public:
  Aggregation(Reduce reduce) : reduce_(reduce) {}
  template <class F>
  requires std::invocable<const F&, const Tensor&, const SegmentPlan&> Aggregation(F function)
      : function_(std::move(function)) {}

  Tensor operator()(const Tensor& messages, const Graph& graph) const;

 private:
  Reduce reduce_ = Reduce::sum;
  std::function<Tensor(const Tensor&, const SegmentPlan&)> function_;
};

/// aggregate(message(rows)): (num_dst, ..). A destination without edges gets what a segment without rows gives, for a
/// Reduce 0 (mul: 1). Gradients: as the functions'; ties of max and min as `segment_reduce`.
/// Errors: InvalidArgument for row counts, also of what `message` returned.
Tensor pass_messages(const EdgeRows& rows, const std::function<Tensor(const EdgeRows&)>& message,
                     const Aggregation& aggregate);

/// Takes what was aggregated as it is.
struct NoUpdate {
  Tensor operator()(const Tensor& received, const Tensor&) const { return received; }
};

/// The three functions as a layer. `message` and `update` may be modules: those with a `visit` are part of the state, under
/// the names `message` and `update`.
template <class Message, class Update = NoUpdate>
struct MessagePassing {
  Message message;
  Aggregation aggregate = Reduce::sum;
  Update update = {};

  Tensor operator()(const Tensor& x, const Graph& graph, const Tensor& edge_attr = {}) const {
    return (*this)(x, x, graph, edge_attr);
  }
  /// Bipartite: x_src (num_src, ..) sends, x_dst (num_dst, ..) receives.
  Tensor operator()(const Tensor& x_src, const Tensor& x_dst, const Graph& graph, const Tensor& edge_attr = {}) const {
    return update(pass_messages(EdgeRows(graph, x_src, x_dst, edge_attr), message, aggregate), x_dst);
  }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    if constexpr (requires { Message::visit(self.message, visitor); }) visitor("message", self.message);
    if constexpr (requires { Update::visit(self.update, visitor); }) visitor("update", self.update);
  }
};
template <class Message>
MessagePassing(Message, Aggregation) -> MessagePassing<Message>;
template <class Message, class Update>
MessagePassing(Message, Aggregation, Update) -> MessagePassing<Message, Update>;

}  // namespace tessera
