#pragma once

#include <memory>

#include "tessera/core/tensor.h"

namespace tessera {

struct RelationalState;

/// A directed graph whose edges have types ("relations"), grouped by them: what a relational convolution walks. An immutable
/// handle; copies share the arrays, and the grouping by sources that some passes need is made once on demand, which is
/// safe from several threads.
class RelationalGraph {
 public:
  RelationalGraph() = default;

  /// Edge e goes from src[e] to dst[e] and is of relation type[e]. src, dst, type: i32 or i64 (E). Relations without edges
  /// are allowed, and several relations between the same nodes.
  /// Cost: two stable counting sorts, never a combined key. Memory: 12 bytes an edge, and 16 for each pair of a relation
  /// and a destination that it reaches.
  /// Errors: InvalidArgument naming the first id outside [0, num_src), [0, num_dst) or [0, num_relations), its position and
  /// the range; unequal lengths.
  static RelationalGraph from_coo(const Tensor& src, const Tensor& dst, const Tensor& type, int64_t num_src, int64_t num_dst,
                                  int64_t num_relations);

  bool defined() const { return state_ != nullptr; }
  int64_t num_src() const;
  int64_t num_dst() const;
  int64_t num_edges() const;
  int64_t num_relations() const;

 private:
  friend struct RelationalState;
  explicit RelationalGraph(std::shared_ptr<RelationalState> state) : state_(std::move(state)) {}
  std::shared_ptr<RelationalState> state_;
};

}  // namespace tessera
