#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "tessera/core/once.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"
#include "tessera/sparse/schedule.h"

/// What is behind a Graph handle, for files of sparse/ that need more than the public arrays.
namespace tessera {

struct SourceBlocks;

struct Schedule {
  std::vector<Chunk> chunks;
  std::vector<Hub> hubs;
  int64_t slots = 0;  // partial results of all hubs
};

/// One direction of a graph. Both directions live in one block that every handle of either keeps alive, so neither needs
/// a reference to the other.
struct GraphState {
  int64_t num_src = 0, num_dst = 0;
  Tensor rowptr, col, edge_id;
  Once<Tensor> in_degree;
  Once<Schedule> schedule;
  Once<std::shared_ptr<const void>> gcn_norm;               // the GcnNorm of the default options
  Once<std::shared_ptr<const void>> looped;                 // the LoopedGraph without weights
  Once<std::shared_ptr<const SourceBlocks>> source_blocks;  // null where they do not pay
  Once<SegmentPlan> edge_plan;                              // the row of each edge, by edge id
  Once<Graph> in_id_order;                                  // with rows in the order of edge ids; undefined when they are

  GraphState* other = nullptr;     // the reverse direction
  std::atomic<bool> built{false};  // whether the arrays are there; the reverse direction's are made on demand
  std::mutex building;

  /// A graph of checked arrays: rowptr i64 (num_dst + 1), col i32 (E), edge_id i64 (E) or undefined.
  static Graph make(int64_t num_src, int64_t num_dst, Tensor rowptr, Tensor col, Tensor edge_id);
  static const Schedule& schedule_of(const Graph& graph);
  static GraphState& of(const Graph& graph) { return *graph.state_; }
};

}  // namespace tessera
