// Renaming of nodes. The new rows are the old ones in another order with their columns renamed: one pass over the edges.
//
// Degree: a counting sort of nodes.
// Reverse Cuthill-McKee: breadth-first from a node far from the middle of its component, each node's new neighbours by
// rising degree, the whole line reversed. The start is where a breadth-first search from a node of least degree ends, as
// long as that makes the search deeper (George and Liu). A node is discovered once, so sorting the discovered costs
// O(N log N) and the walk O(E). It runs on one thread: levels of the graphs it is meant for are too narrow to share.
// Community: community.cpp.

#include "tessera/sparse/reorder.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/counting_sort.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/ids.h"
#include "tessera/sparse/community.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 12;  // rows
constexpr int kMostStarts = 4;       // searches for a start, beyond which depth hardly grows

/// Calls f(neighbour) along a node's edges.
template <class F>
void for_neighbours(const Graph& graph, int64_t node, const F& f) {
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  for (int64_t i = rowptr[node]; i < rowptr[node + 1]; ++i) f(col[i]);
}

class CuthillMcKee {
 public:
  explicit CuthillMcKee(const Neighbours& neighbours) : neighbours_(neighbours), seen_(neighbours.degree.size(), 0) {}

  std::vector<int32_t> order() {
    const int64_t nodes = int64_t(seen_.size());
    std::vector<int32_t> line = by_falling(neighbours_.degree);
    std::reverse(line.begin(), line.end());
    std::vector<int32_t> order;
    order.reserve(size_t(nodes));
    for (const int32_t node : line)
      if (seen_[size_t(node)] != kPlaced) {
        const int32_t start = far_from(node);
        search(start, kPlaced, order);
      }
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  static constexpr int kPlaced = -1;

  int64_t degree(int32_t node) const { return neighbours_.degree[size_t(node)]; }

  /// Appends the component of `start` to `line`, marking it; the number of levels, and where the last of them begins.
  struct Depth {
    int64_t levels, last;
  };
  Depth search(int32_t start, int mark, std::vector<int32_t>& line) {
    const auto less = [this](int32_t a, int32_t b) { return degree(a) != degree(b) ? degree(a) < degree(b) : a < b; };
    Depth depth{0, int64_t(line.size())};
    line.push_back(start);
    seen_[size_t(start)] = mark;
    for (int64_t begin = depth.last; begin < int64_t(line.size());) {
      const int64_t end = int64_t(line.size());
      ++depth.levels;
      depth.last = begin;
      for (; begin < end; ++begin) {
        const int32_t node = line[size_t(begin)];
        const size_t first = line.size();
        const auto discover = [&](int32_t neighbour) {
          int& seen = seen_[size_t(neighbour)];
          if (seen == mark) return;
          seen = mark;
          line.push_back(neighbour);
        };
        for_neighbours(neighbours_.in, node, discover);
        if (neighbours_.out.defined()) for_neighbours(neighbours_.out, node, discover);
        if (mark == kPlaced) std::sort(line.begin() + int64_t(first), line.end(), less);
      }
    }
    return depth;
  }

  /// A node at the end of the component of `node`.
  int32_t far_from(int32_t node) {
    int64_t levels = 0;
    for (int i = 0; i < kMostStarts; ++i) {
      reached_.clear();
      const Depth depth = search(node, ++mark_, reached_);
      if (depth.levels <= levels) break;
      levels = depth.levels;
      int32_t best = reached_[size_t(depth.last)];
      for (size_t j = size_t(depth.last); j < reached_.size(); ++j) {
        const int32_t other = reached_[j];
        if (degree(other) < degree(best) || (degree(other) == degree(best) && other < best)) best = other;
      }
      if (best == node) break;
      node = best;
    }
    return node;
  }

  const Neighbours& neighbours_;
  std::vector<int> seen_;  // the search that came here last, or kPlaced
  int mark_ = 0;
  std::vector<int32_t> reached_;
};

void check_square(const Graph& graph) {
  check(graph.defined(), "reorder: the graph is undefined");
  check(graph.num_src() == graph.num_dst(),
        "reorder: the graph has {} sources and {} destinations but needs one set of nodes", graph.num_src(),
        graph.num_dst());
}

/// `old_id` holds each node once.
Reordered renamed(const Graph& graph, Tensor old_id) {
  const int64_t nodes = graph.num_dst(), count = graph.num_edges();
  Reordered out{{}, std::move(old_id), Tensor::empty(Shape{nodes}, DType::i32)};
  const int32_t* old = out.old_id.data<int32_t>();
  int32_t* renamed = out.new_id.mutable_data<int32_t>();
  const int64_t* from_rows = graph.rowptr().data<int64_t>();
  Tensor rowptr = Tensor::empty(Shape{nodes + 1}, DType::i64), col = Tensor::empty(Shape{count}, DType::i32),
         edge_id = Tensor::empty(Shape{count}, DType::i64);
  int64_t* rows = rowptr.mutable_data<int64_t>();
  rows[0] = 0;
  for (int64_t d = 0; d < nodes; ++d) {
    renamed[old[d]] = int32_t(d);
    rows[d + 1] = rows[d] + from_rows[old[d] + 1] - from_rows[old[d]];
  }
  const int32_t* from_col = graph.col().data<int32_t>();
  const int64_t* from_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  int32_t* to_col = col.mutable_data<int32_t>();
  int64_t* to_id = edge_id.mutable_data<int64_t>();
  parallel_for(nodes, kGrain / 16, [=](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      const int64_t from = from_rows[old[d]], to = rows[d], n = rows[d + 1] - to;
      for (int64_t i = 0; i < n; ++i) to_col[to + i] = renamed[from_col[from + i]];
      for (int64_t i = 0; i < n; ++i) to_id[to + i] = from_id != nullptr ? from_id[from + i] : from + i;
    }
  });
  out.graph = GraphState::make(nodes, nodes, rowptr, col, edge_id);
  return out;
}

/// rows[index], whose gradient goes back by the inverse.
Tensor by_index(const char* op, const Tensor& rows, const Tensor& index, const Tensor& inverse) {
  check(rows.defined(), "{}: rows is undefined", op);
  check(rows.ndim() >= 1 && rows.dim(0) == index.numel(),
        "{}: rows has shape {} but the graph has {} nodes, so it needs [{}, ...]", op, rows.shape(), index.numel(),
        index.numel());
  Tensor out = gather(rows.detach(), index);
  record(op, out, {rows}, [inverse](const Tensor& grad, Gradients& into) { into.add(0, gather(grad, inverse)); });
  return out;
}

}  // namespace

std::vector<int32_t> by_falling(const std::vector<int64_t>& weight) {
  const int64_t count = int64_t(weight.size());
  int64_t most = 0;
  for (const int64_t w : weight) most = std::max(most, w);
  // Beyond that, weights of more than four times the nodes count alike: keys are for an order, not exact.
  const int64_t top = std::min<int64_t>({most, 4 * count + 1024, std::numeric_limits<int32_t>::max() - 1});
  Scratch<int32_t> key(count);
  for (int64_t i = 0; i < count; ++i) key[i] = int32_t(top - std::min(weight[size_t(i)], top));
  Scratch<int64_t> offsets(top + 2), places(count);
  CountingSort sort;
  sort.count = count;
  sort.num_keys = top + 1;
  sort.key = key.data();
  sort.offsets = offsets.data();
  sort.out_id = places.data();
  counting_sort(sort);
  std::vector<int32_t> order(places.data(), places.data() + count);
  // The few at the top by their true weight.
  std::stable_sort(order.begin(), order.begin() + offsets[1],
                   [&](int32_t a, int32_t b) { return weight[size_t(a)] > weight[size_t(b)]; });
  return order;
}

Neighbours neighbours_of(const Graph& graph) {
  const int64_t nodes = graph.num_dst();
  Neighbours out{graph, {}, std::vector<int64_t>(size_t(nodes))};
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  int64_t* degree = out.degree.data();
  // Whole numbers: the order of additions does not matter.
  parallel_for(graph.num_edges(), 1 << 16, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::atomic_ref(degree[col[i]]).fetch_add(1, std::memory_order_relaxed);
  });
  bool alike = true;
  for (int64_t d = 0; d < nodes; ++d) alike &= degree[d] == rowptr[d + 1] - rowptr[d];
  if (alike) return out;
  for (int64_t d = 0; d < nodes; ++d) degree[d] += rowptr[d + 1] - rowptr[d];
  out.out = graph.transpose();
  return out;
}

Tensor Reordered::permute(const Tensor& rows) const { return by_index("permute", rows, old_id, new_id); }
Tensor Reordered::restore(const Tensor& rows) const { return by_index("restore", rows, new_id, old_id); }
Tensor Reordered::rename(const Tensor& ids) const {
  check_id_list("rename", "ids", ids);
  check_id_range("rename", "ids", ids, new_id.numel());
  return gather(new_id, ids);
}

Reordered reorder(const Graph& graph, Ordering ordering) {
  check_square(graph);
  const Neighbours neighbours = neighbours_of(graph);
  const std::vector<int32_t> order = ordering == Ordering::degree ? by_falling(neighbours.degree)
                                     : ordering == Ordering::rcm  ? CuthillMcKee(neighbours).order()
                                                                  : community_order(neighbours);
  return renamed(graph, Tensor::from(order, Shape{graph.num_dst()}));
}

Reordered reorder(const Graph& graph, const Tensor& old_id) {
  check_square(graph);
  const int64_t nodes = graph.num_dst();
  check_id_list("reorder", "old_id", old_id);
  check(old_id.numel() == nodes, "reorder: old_id has {} entries but the graph has {} nodes", old_id.numel(), nodes);
  Tensor ids = narrow_ids("reorder", "old_id", old_id, nodes);
  std::vector<char> seen(static_cast<size_t>(nodes));
  for (int64_t i = 0; i < nodes; ++i) {
    const int32_t id = ids.data<int32_t>()[i];
    check(seen[size_t(id)] == 0, "reorder: old_id[{}] is {}, which was there before; each node needs to come once", i, id);
    seen[size_t(id)] = 1;
  }
  return renamed(graph, std::move(ids));
}

}  // namespace tessera
