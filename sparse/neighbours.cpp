// Nearest neighbours by a k-d tree. Each part of the points is cut at the median of its longest side until a leaf holds
// few, and keeps the box of its points; a search visits the nearer half first and skips a part whose box is farther than
// the worst neighbour so far. Squared distances to boxes are computed like those to points (the same differences, squares
// and order of addition), and rounding is monotonic, so a box is never found farther than a point in it: the result is
// exactly that of comparing all pairs in double.
//
// Ties go to the lower index. Equal coordinates are cut by index and a part knows its lowest index, so that a part at the
// distance of the worst neighbour is skipped unless it can hold a lower index: a million equal points cost what others do.
//
// Points of a batch make one tree for each graph. Points are searched in the order of the leaves, whose paths down the
// tree are alike. Reference: Friedman, Bentley and Finkel, ACM TOMS 3(3), 1977.

#include "tessera/sparse/neighbours.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tessera/core/parallel.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/node_offsets.h"

namespace tessera {
namespace {

constexpr int64_t kLeaf = 16;     // points, at most; a median cut leaves more than half of that
constexpr int64_t kBlock = 1024;  // points searched by one task

struct Near {
  double squared;
  int32_t point;
  bool operator<(const Near& other) const {
    return squared != other.squared ? squared < other.squared : point < other.point;
  }
};

template <class T>
class Forest {
 public:
  Forest(const T* positions, int64_t dims, const std::vector<int64_t>& offsets)
      : dims_(dims), order_(size_t(offsets.back())) {
    std::iota(order_.begin(), order_.end(), 0);
    for (size_t g = 0; g + 1 < offsets.size(); ++g)
      roots_.push_back(offsets[g] < offsets[g + 1] ? build(positions, offsets[g], offsets[g + 1]) : -1);
    leaves_.resize(size_t(num_leaves_ * kLeaf * dims));
    parallel_for(int64_t(nodes_.size()), 1 << 10, [&](int64_t begin, int64_t end) {
      for (const Node& node : std::span(nodes_).subspan(size_t(begin), size_t(end - begin))) {
        if (node.child >= 0) continue;
        T* leaf = leaves_.data() + node.second * kLeaf * dims;
        for (int64_t i = 0; i < node.end - node.begin; ++i)
          for (int64_t d = 0; d < dims; ++d) leaf[d * kLeaf + i] = positions[order_[size_t(node.begin + i)] * dims + d];
      }
    });
  }

  /// Points in the order of the leaves.
  const std::vector<int32_t>& order() const { return order_; }

  /// Calls found(near) for the points of graph g that may be nearer than `bound()`, which only falls: every point before
  /// `bound()` is among them.
  template <int kDims, class Bound, class Found>
  void search(size_t g, const T* from, const Bound& bound, const Found& found) const {
    if (roots_[g] < 0) return;
    struct Later {
      int32_t node;
      double squared;
    };
    Later stack[64];  // a median cut halves: depth is at most 31
    int depth = 0;
    stack[depth++] = {roots_[g], to_box<kDims>(roots_[g], from)};
    while (depth > 0) {
      auto [at, squared] = stack[--depth];
      if (!may_hold(at, squared, bound())) continue;
      while (nodes_[size_t(at)].child >= 0) {
        const int32_t first = nodes_[size_t(at)].child, second = nodes_[size_t(at)].second;
        double near = to_box<kDims>(first, from), far = to_box<kDims>(second, from);
        const bool swapped = far < near;
        if (swapped) std::swap(near, far);
        const int32_t nearer = swapped ? second : first, farther = swapped ? first : second;
        if (may_hold(farther, far, bound())) stack[depth++] = {farther, far};
        at = nearer;
        squared = near;
        if (!may_hold(at, squared, bound())) break;
      }
      const Node& node = nodes_[size_t(at)];
      if (node.child >= 0) continue;
      double all[kLeaf];
      to_leaf<kDims>(leaves_.data() + node.second * kLeaf * dims_, from, all);
      for (int64_t i = 0; i < node.end - node.begin; ++i) found(Near{all[i], order_[size_t(node.begin + i)]});
    }
  }

 private:
  struct Node {
    int32_t begin, end;  // places in `order_`
    int32_t child;       // the first, or -1 in a leaf
    int32_t second;      // the other child; of a leaf, its number
    int32_t lowest;      // index of its points
  };

  bool may_hold(int32_t node, double squared, const Near& bound) const {
    return squared < bound.squared || (squared == bound.squared && nodes_[size_t(node)].lowest < bound.point);
  }

  // All points of a leaf side by side: each sum in the order of the dimensions, the sums in vectors.
  template <int kDims>
  void to_leaf(const T* leaf, const T* from, double* sums) const {
    const int64_t dims = kDims > 0 ? kDims : dims_;
    for (int64_t i = 0; i < kLeaf; ++i) sums[i] = 0;
    for (int64_t d = 0; d < dims; ++d, leaf += kLeaf) {
      const double center = double(from[d]);
      for (int64_t i = 0; i < kLeaf; ++i) {
        const double difference = double(leaf[i]) - center;
        sums[i] += difference * difference;
      }
    }
  }

  template <int kDims>
  double to_box(int32_t node, const T* from) const {
    const int64_t dims = kDims > 0 ? kDims : dims_;
    const T *low = boxes_.data() + int64_t(node) * 2 * dims, *high = low + dims;
    double sum = 0;
    for (int64_t d = 0; d < dims; ++d) {
      const T nearest = std::min(std::max(from[d], low[d]), high[d]);
      const double difference = double(nearest) - double(from[d]);
      sum += difference * difference;
    }
    return sum;
  }

  int32_t build(const T* positions, int64_t first, int64_t last) {
    struct Part {
      int64_t begin, end;
      int32_t parent;  // its second child is this part; -1: a root, or a first child
    };
    const int32_t root = int32_t(nodes_.size());
    std::vector<Part> parts{{first, last, -1}};
    while (!parts.empty()) {
      Part part = parts.back();
      parts.pop_back();
      for (;;) {
        const int32_t at = int32_t(nodes_.size());
        if (part.parent >= 0) nodes_[size_t(part.parent)].second = at;
        part.parent = -1;
        const int64_t widest = add_node(positions, part.begin, part.end);
        if (part.end - part.begin <= kLeaf) {
          nodes_[size_t(at)].second = num_leaves_++;
          break;
        }
        const int64_t middle = part.begin + (part.end - part.begin) / 2;
        std::nth_element(order_.begin() + part.begin, order_.begin() + middle, order_.begin() + part.end,
                         [&](int32_t a, int32_t b) {
                           const T x = positions[a * dims_ + widest], y = positions[b * dims_ + widest];
                           return x != y ? x < y : a < b;
                         });
        nodes_[size_t(at)].child = at + 1;  // built next
        parts.push_back({middle, part.end, at});
        part.end = middle;
      }
    }
    return root;
  }

  // Gives the dimension of the box's longest side.
  int64_t add_node(const T* positions, int64_t begin, int64_t end) {
    Node node{int32_t(begin), int32_t(end), -1, -1, order_[size_t(begin)]};
    const size_t box = boxes_.size();
    boxes_.resize(box + 2 * size_t(dims_));
    T *low = boxes_.data() + box, *high = low + dims_;
    std::copy_n(positions + node.lowest * dims_, dims_, low);
    std::copy_n(low, dims_, high);
    for (int64_t i = begin + 1; i < end; ++i) {
      const T* p = positions + order_[size_t(i)] * dims_;
      node.lowest = std::min(node.lowest, order_[size_t(i)]);
      for (int64_t d = 0; d < dims_; ++d) {
        low[d] = std::min(low[d], p[d]);
        high[d] = std::max(high[d], p[d]);
      }
    }
    nodes_.push_back(node);
    int64_t widest = 0;
    for (int64_t d = 1; d < dims_; ++d)
      if (double(high[d]) - double(low[d]) > double(high[widest]) - double(low[widest])) widest = d;
    return widest;
  }

  int64_t dims_;
  std::vector<int32_t> order_;
  int32_t num_leaves_ = 0;
  std::vector<T> leaves_, boxes_;  // of each leaf: kLeaf values of the first dimension, kLeaf of the second, ...
  std::vector<Node> nodes_;
  std::vector<int32_t> roots_;  // -1: no points
};

/// Calls f(dims) with the number of dimensions as a constant where that is worth it, else 0.
template <class F>
void with_dims(int64_t dims, const F& f) {
  switch (dims) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    default: return f.template operator()<0>();
  }
}

/// Calls f(graph, place) for every point, in the order of the leaves.
template <class F>
void each_place(const std::vector<int64_t>& offsets, int64_t begin, int64_t end, const F& f) {
  size_t g = size_t(std::upper_bound(offsets.begin(), offsets.end(), begin) - offsets.begin()) - 1;
  for (int64_t place = begin; place < end; ++place) {
    while (place >= offsets[g + 1]) ++g;
    f(g, place);
  }
}

/// The k nearest seen, ascending once sorted.
class Nearest {
 public:
  void start(int64_t k) {
    most_ = size_t(k);
    heap_.clear();
  }
  void add(const Near& near) {
    if (heap_.size() < most_) {
      heap_.push_back(near);
      std::push_heap(heap_.begin(), heap_.end());
    } else if (near < heap_.front()) {
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.back() = near;
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  bool full() const { return heap_.size() == most_; }
  const Near& worst() const { return heap_.front(); }
  const std::vector<Near>& sorted() {
    std::sort_heap(heap_.begin(), heap_.end());
    return heap_;
  }

 private:
  size_t most_ = 0;
  std::vector<Near> heap_;
};

constexpr Near kFarthest{std::numeric_limits<double>::infinity(), std::numeric_limits<int32_t>::max()};

}  // namespace

Graph knn_graph(const Tensor& positions, int64_t k, const NeighbourOptions& options) {
  const std::vector<int64_t> offsets = node_offsets_of("knn_graph", positions, options.node_offsets);
  check(k >= 0, "knn_graph: k is {} but needs to be 0 or more", k);
  const int64_t n = positions.dim(0), dims = positions.dim(1);
  Tensor rowptr = Tensor::empty(Shape{n + 1}, DType::i64);
  int64_t* rows = rowptr.mutable_data<int64_t>();
  rows[0] = 0;
  for (size_t g = 0; g + 1 < offsets.size(); ++g) {
    const int64_t others = offsets[g + 1] - offsets[g] - (options.loops ? 0 : 1);
    for (int64_t i = offsets[g]; i < offsets[g + 1]; ++i) rows[i + 1] = rows[i] + std::min(k, others);
  }
  Tensor col = Tensor::empty(Shape{rows[n]}, DType::i32);
  int32_t* cols = col.mutable_data<int32_t>();
  if (rows[n] > 0)
    with_float(positions.dtype(), "knn_graph", [&]<class T>() {
      const T* x = positions.data<T>();
      const Forest<T> forest(x, dims, offsets);
      with_dims(dims, [&]<int kDims>() {
        parallel_for(n, kBlock, [&](int64_t begin, int64_t end) {
          Nearest nearest;
          each_place(offsets, begin, end, [&](size_t g, int64_t place) {
            const int32_t i = forest.order()[size_t(place)];
            if (rows[i + 1] == rows[i]) return;
            nearest.start(rows[i + 1] - rows[i]);
            forest.template search<kDims>(
                g, x + i * dims, [&]() -> const Near& { return nearest.full() ? nearest.worst() : kFarthest; },
                [&](const Near& near) {
                  if (near.point != i || options.loops) nearest.add(near);
                });
            int64_t at = rows[i];
            for (const Near& near : nearest.sorted()) cols[at++] = near.point;
          });
        });
      });
    });
  return GraphState::make(n, n, rowptr, col, Tensor());
}

Graph radius_graph(const Tensor& positions, double radius, int64_t most, const NeighbourOptions& options) {
  const std::vector<int64_t> offsets = node_offsets_of("radius_graph", positions, options.node_offsets);
  check(radius >= 0, "radius_graph: radius is {} but needs to be 0 or more", radius);
  const int64_t n = positions.dim(0), dims = positions.dim(1);
  // Nothing is before this bound but what is strictly nearer.
  const Near bound{radius * radius, -1};
  Tensor rowptr = Tensor::empty(Shape{n + 1}, DType::i64), col;
  int64_t* rows = rowptr.mutable_data<int64_t>();
  with_float(positions.dtype(), "radius_graph", [&]<class T>() {
    const T* x = positions.data<T>();
    const Forest<T> forest(x, dims, offsets);
    const int64_t blocks = (n + kBlock - 1) / kBlock;
    std::vector<std::vector<int32_t>> found(static_cast<size_t>(blocks));  // row after row, in the order of the leaves
    rows[0] = 0;
    with_dims(dims, [&]<int kDims>() {
      parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
        std::vector<Near> row;
        for (int64_t b = first; b < last; ++b)
          each_place(offsets, b * kBlock, std::min(n, (b + 1) * kBlock), [&](size_t g, int64_t place) {
            const int32_t i = forest.order()[size_t(place)];
            row.clear();
            forest.template search<kDims>(
                g, x + i * dims, [&]() -> const Near& { return bound; },
                [&](const Near& near) {
                  if (near < bound && (near.point != i || options.loops)) row.push_back(near);
                });
            if (most >= 0 && int64_t(row.size()) > most) {
              std::nth_element(row.begin(), row.begin() + most, row.end());
              row.resize(size_t(most));
            }
            std::sort(row.begin(), row.end(), [](const Near& p, const Near& q) { return p.point < q.point; });
            rows[i + 1] = int64_t(row.size());
            for (const Near& near : row) found[size_t(b)].push_back(near.point);
          });
      });
    });
    for (int64_t i = 0; i < n; ++i) rows[i + 1] += rows[i];
    col = Tensor::empty(Shape{rows[n]}, DType::i32);
    int32_t* cols = col.mutable_data<int32_t>();
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const int32_t* from = found[size_t(b)].data();
        for (int64_t place = b * kBlock; place < std::min(n, (b + 1) * kBlock); ++place) {
          const int32_t i = forest.order()[size_t(place)];
          const int64_t count = rows[i + 1] - rows[i];
          std::copy_n(from, count, cols + rows[i]);
          from += count;
        }
      }
    });
  });
  return GraphState::make(n, n, rowptr, col, Tensor());
}

Tensor edge_lengths(const Graph& graph, const Tensor& positions) {
  check(graph.defined() && graph.num_src() == graph.num_dst(), "edge_lengths: the graph needs to be square");
  check(positions.defined() && positions.ndim() == 2, "edge_lengths: positions has {} dimensions but needs 2",
        positions.defined() ? positions.ndim() : 0);
  check(positions.dim(0) == graph.num_dst(), "edge_lengths: positions has {} rows but the graph has {} nodes",
        positions.dim(0), graph.num_dst());
  Tensor out = Tensor::empty(Shape{graph.num_edges()}, positions.dtype());
  const int64_t dims = positions.dim(1);
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  with_float(positions.dtype(), "edge_lengths", [&]<class T>() {
    const T* p = positions.data<T>();
    T* length = out.mutable_data<T>();
    parallel_for(graph.num_dst(), 1 << 12, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t k = rowptr[i]; k < rowptr[i + 1]; ++k) {
          double sum = 0;
          for (int64_t d = 0; d < dims; ++d) {
            const double difference = double(p[col[k] * dims + d]) - double(p[i * dims + d]);
            sum += difference * difference;
          }
          length[edge_id != nullptr ? edge_id[k] : k] = T(std::sqrt(sum));
        }
    });
  });
  return out;
}

}  // namespace tessera
