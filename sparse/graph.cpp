// Graph building: an edge list becomes compressed rows by a stable counting sort on the destination, the transpose by the
// same sort on the columns (scatter/counting_sort.cpp). A list that is already sorted by destination is only copied.
// Ids are checked and narrowed to int32 in one pass over each list before anything else touches them (scatter/ids.cpp).

#include "tessera/sparse/graph.h"

#include <algorithm>
#include <limits>

#include "tessera/core/parallel.h"
#include "tessera/scatter/counting_sort.h"
#include "tessera/scatter/ids.h"
#include "tessera/scatter/segment_plan_state.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 16;
constexpr int64_t kMaxNodes = std::numeric_limits<int32_t>::max();
static_assert(kHubEdges == kHubRows && kChunkCost == kSegmentChunkCost && kRowCost == kSegmentCost);

struct GraphPair {
  GraphState side[2];
};

void check_count(const char* what, int64_t count) {
  check(0 <= count && count <= kMaxNodes, "graph: {} is {} but needs to be in [0, {}]", what, count, kMaxNodes);
}

}  // namespace

Graph GraphState::make(int64_t num_src, int64_t num_dst, Tensor rowptr, Tensor col, Tensor edge_id) {
  auto pair = std::make_shared<GraphPair>();
  GraphState& state = pair->side[0];
  state.other = &pair->side[1];
  pair->side[1].other = &state;
  state.num_src = pair->side[1].num_dst = num_src;
  state.num_dst = pair->side[1].num_src = num_dst;
  state.rowptr = std::move(rowptr);
  state.col = std::move(col);
  state.edge_id = std::move(edge_id);
  state.built.store(true, std::memory_order_release);
  return Graph(std::shared_ptr<GraphState>(std::move(pair), &state));
}

Graph Graph::from_coo(const Tensor& src, const Tensor& dst, int64_t num_src, int64_t num_dst) {
  check_count("num_src", num_src);
  check_count("num_dst", num_dst);
  check_id_list("graph", "src", src);
  check_id_list("graph", "dst", dst);
  check(src.numel() == dst.numel(), "graph: src has {} entries but dst has {}", src.numel(), dst.numel());
  const int64_t count = src.numel();

  // int32 lists are read where they are; int64 ones are narrowed first.
  const auto narrowed = [&](const char* what, const Tensor& ids, int64_t bound) {
    if (ids.dtype() == DType::i64) return narrow_ids("graph", what, ids, bound);
    check_id_range("graph", what, ids, bound);
    return ids;
  };
  const Tensor src32 = narrowed("src", src, num_src), dst32 = narrowed("dst", dst, num_dst);

  Tensor rowptr = Tensor::empty(Shape{num_dst + 1}, DType::i64), col = Tensor::empty(Shape{count}, DType::i32);
  if (is_sorted(dst32.data<int32_t>(), count)) {
    offsets_of_sorted(dst32.data<int32_t>(), count, num_dst, rowptr.mutable_data<int64_t>());
    const int32_t* from = src32.data<int32_t>();
    int32_t* to = col.mutable_data<int32_t>();
    parallel_for(count, kGrain, [=](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
    return GraphState::make(num_src, num_dst, rowptr, col, Tensor());
  }
  Tensor edge_id = Tensor::empty(Shape{count}, DType::i64);
  CountingSort sort;
  sort.count = count;
  sort.num_keys = num_dst;
  sort.key = dst32.data<int32_t>();
  sort.value = src32.data<int32_t>();
  sort.offsets = rowptr.mutable_data<int64_t>();
  sort.out_value = col.mutable_data<int32_t>();
  sort.out_id = edge_id.mutable_data<int64_t>();
  counting_sort(sort);
  return GraphState::make(num_src, num_dst, rowptr, col, edge_id);
}

Graph Graph::from_edge_index(const Tensor& edge_index, int64_t num_nodes) {
  check(edge_index.defined(), "graph: edge_index is undefined");
  check(edge_index.ndim() == 2 && edge_index.dim(0) == 2, "graph: edge_index has shape {} but needs [2, E]",
        edge_index.shape());
  check_count("num_nodes", num_nodes);
  const Shape list{edge_index.dim(1)};
  return from_coo(edge_index.view_rows(0, 1).view_as(list), edge_index.view_rows(1, 2).view_as(list), num_nodes, num_nodes);
}

Graph Graph::from_csr(const Tensor& rowptr, const Tensor& col, int64_t num_src) {
  check_count("num_src", num_src);
  check(rowptr.defined(), "graph: rowptr is undefined");
  check(rowptr.dtype() == DType::i64, "graph: rowptr has dtype {} but needs i64", rowptr.dtype());
  check(rowptr.ndim() == 1 && rowptr.numel() >= 1, "graph: rowptr has shape {} but needs [num_dst + 1]", rowptr.shape());
  check_id_list("graph", "col", col);
  const int64_t num_dst = rowptr.numel() - 1;
  check_count("num_dst", num_dst);
  Tensor own_rowptr = Tensor::from(rowptr.span<int64_t>(), rowptr.shape());
  const int64_t* offsets = own_rowptr.data<int64_t>();
  check(offsets[0] == 0, "graph: rowptr[0] is {} but needs to be 0", offsets[0]);
  for (int64_t d = 0; d < num_dst; ++d)
    check(offsets[d] <= offsets[d + 1], "graph: rowptr[{}] is {} but rowptr[{}] before it is {}; offsets must not fall",
          d + 1, offsets[d + 1], d, offsets[d]);
  check(offsets[num_dst] == col.numel(), "graph: rowptr ends at {} but col has {} entries", offsets[num_dst], col.numel());
  return GraphState::make(num_src, num_dst, own_rowptr, narrow_ids("graph", "col", col, num_src), Tensor());
}

namespace {
const GraphState& defined_state(const std::shared_ptr<GraphState>& state) {
  check(state != nullptr, "graph: an undefined graph was used");
  return *state;
}
}  // namespace

int64_t Graph::num_src() const { return defined_state(state_).num_src; }
int64_t Graph::num_dst() const { return defined_state(state_).num_dst; }
int64_t Graph::num_edges() const { return defined_state(state_).col.numel(); }
const Tensor& Graph::rowptr() const { return defined_state(state_).rowptr; }
const Tensor& Graph::col() const { return defined_state(state_).col; }
const Tensor& Graph::edge_id() const { return defined_state(state_).edge_id; }

Graph Graph::transpose() const {
  const GraphState& self = defined_state(state_);
  GraphState& other = *self.other;
  if (!other.built.load(std::memory_order_acquire)) {
    Tensor rowptr = Tensor::empty(Shape{self.num_src + 1}, DType::i64), col = Tensor::empty(self.col.shape(), DType::i32),
           edge_id = Tensor::empty(self.col.shape(), DType::i64);
    CountingSort sort;
    sort.count = self.col.numel();
    sort.num_keys = self.num_src;
    sort.key = self.col.data<int32_t>();
    sort.rowptr = self.rowptr.data<int64_t>();
    sort.num_rows = self.num_dst;
    sort.id = self.edge_id.defined() ? self.edge_id.data<int64_t>() : nullptr;
    sort.offsets = rowptr.mutable_data<int64_t>();
    sort.out_value = col.mutable_data<int32_t>();
    sort.out_id = edge_id.mutable_data<int64_t>();
    counting_sort(sort);
    const std::lock_guard lock(other.building);
    if (!other.built.load(std::memory_order_relaxed)) {
      other.rowptr = std::move(rowptr);
      other.col = std::move(col);
      other.edge_id = std::move(edge_id);
      other.built.store(true, std::memory_order_release);
    }
  }
  return Graph(std::shared_ptr<GraphState>(state_, &other));
}

const Tensor& Graph::in_degree() const {
  defined_state(state_);
  return state_->in_degree.get([&] {
    const int64_t* rowptr = state_->rowptr.data<int64_t>();
    Tensor degree = Tensor::empty(Shape{num_dst()}, DType::i32);
    int32_t* out = degree.mutable_data<int32_t>();
    parallel_for(num_dst(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) {
        const int64_t n = rowptr[d + 1] - rowptr[d];
        check<Unsupported>(n <= kMaxNodes, "graph: node {} has {} incoming edges but at most {} can be counted", d, n,
                           kMaxNodes);
        out[d] = int32_t(n);
      }
    });
    return degree;
  });
}

const Schedule& GraphState::schedule_of(const Graph& graph) {
  defined_state(graph.state_);
  GraphState& state = *graph.state_;
  return state.schedule.get([&] {
    Schedule made;
    made.slots = cut_segments(state.rowptr.data<int64_t>(), state.num_dst, made.chunks, made.hubs);
    return made;
  });
}

}  // namespace tessera
