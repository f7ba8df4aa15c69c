// Delaunay triangulation by divide and conquer: the points, sorted by x and then y, are halved down to two or three, and
// two triangulations side by side are merged from their lower common tangent upwards. An edge that crosses the merge and
// fails the circle test goes; a rising bubble decides which side gives the next corner. Every point of one merge sees
// O(1) edges on average, so all is O(N log N) with the sort.
// Reference: Guibas and Stolfi, ACM TOG 4(2), 1985 (edges with four links each, section 5 on the algorithm).
//
// The sign of a determinant is first computed in double with a bound on its error; where the bound does not decide, it is
// computed again as an exact sum of doubles that do not overlap. Reference: Shewchuk, Discrete Comput Geom 18, 1997.

#include "tessera/sparse/delaunay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tessera/core/parallel.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/node_offsets.h"

namespace tessera {
namespace {

struct Point {
  double x, y;
};

/// A number as the exact sum of `size` doubles, ascending, none overlapping another, none zero.
template <int kMost>
struct Sum {
  double term[size_t(kMost)];
  int size = 0;

  int sign() const { return size == 0 ? 0 : term[size - 1] > 0 ? 1 : -1; }
  void push(double value) {
    if (value != 0) term[size++] = value;
  }
};

// a + b = sum + rest exactly.
inline void add(double a, double b, double& sum, double& rest) {
  sum = a + b;
  const double b_part = sum - a, a_part = sum - b_part;
  rest = (a - a_part) + (b - b_part);
}

// a b = product + rest exactly.
inline void multiply(double a, double b, double& product, double& rest) {
  product = a * b;
  rest = std::fma(a, b, -product);
}

Sum<2> difference(double a, double b) {
  double sum = 0, rest = 0;
  add(a, -b, sum, rest);
  Sum<2> out;
  out.push(rest);
  out.push(sum);
  return out;
}

/// a + sign b, by a merge of the terms in ascending order (fast_expansion_sum with exact two-sums throughout).
template <int kA, int kB>
Sum<kA + kB> plus(const Sum<kA>& a, const Sum<kB>& b, double sign = 1) {
  Sum<kA + kB> out;
  int i = 0, j = 0;
  double carry = 0;
  while (i < a.size || j < b.size) {
    const bool from_a = j >= b.size || (i < a.size && std::fabs(a.term[i]) < std::fabs(b.term[j]));
    const double next = from_a ? a.term[i++] : sign * b.term[j++];
    double sum = 0, rest = 0;
    add(carry, next, sum, rest);
    out.push(rest);
    carry = sum;
  }
  out.push(carry);
  return out;
}

template <int kA>
Sum<2 * kA> times(const Sum<kA>& a, double b) {
  Sum<2 * kA> out;
  double carry = 0;
  for (int i = 0; i < a.size; ++i) {
    double product = 0, low = 0, sum = 0, rest = 0;
    multiply(a.term[i], b, product, low);
    add(carry, low, sum, rest);
    out.push(rest);
    add(product, sum, carry, rest);
    out.push(rest);
  }
  out.push(carry);
  return out;
}

template <int kA, int kB>
Sum<2 * kA * kB> times(const Sum<kA>& a, const Sum<kB>& b) {
  Sum<2 * kA * kB> out;
  for (int j = 0; j < b.size; ++j) {
    const Sum<2 * kA> part = times(a, b.term[j]);
    const Sum<2 * kA* kB> before = out;
    const Sum<2 * kA* kB + 2 * kA> grown = plus(before, part);
    out.size = 0;
    for (int i = 0; i < grown.size; ++i) out.push(grown.term[i]);
  }
  return out;
}

constexpr double kEps = std::numeric_limits<double>::epsilon() / 2;

/// Twice the signed area of a, b, c: positive when they turn left.
int turn(const Point& a, const Point& b, const Point& c) {
  const double left = (a.x - c.x) * (b.y - c.y), right = (a.y - c.y) * (b.x - c.x), det = left - right;
  const double bound = (3 + 16 * kEps) * kEps * (std::fabs(left) + std::fabs(right));
  if (det > bound) return 1;
  if (-det > bound) return -1;
  return plus(times(difference(a.x, c.x), difference(b.y, c.y)), times(difference(a.y, c.y), difference(b.x, c.x)), -1)
      .sign();
}

int exact_in_circle(const Point& a, const Point& b, const Point& c, const Point& d) {
  const Sum<2> ax = difference(a.x, d.x), ay = difference(a.y, d.y), bx = difference(b.x, d.x), by = difference(b.y, d.y),
               cx = difference(c.x, d.x), cy = difference(c.y, d.y);
  const auto cross = [](const Sum<2>& px, const Sum<2>& py, const Sum<2>& qx, const Sum<2>& qy) {
    return plus(times(px, qy), times(qx, py), -1);
  };
  const auto lift = [](const Sum<2>& px, const Sum<2>& py) { return plus(times(px, px), times(py, py)); };
  const auto part_a = times(lift(ax, ay), cross(bx, by, cx, cy)), part_b = times(lift(bx, by), cross(cx, cy, ax, ay)),
             part_c = times(lift(cx, cy), cross(ax, ay, bx, by));
  return plus(plus(part_a, part_b), part_c).sign();
}

/// Positive when d lies inside the circle through a, b, c, which turn left.
int in_circle(const Point& a, const Point& b, const Point& c, const Point& d) {
  const double ax = a.x - d.x, ay = a.y - d.y, bx = b.x - d.x, by = b.y - d.y, cx = c.x - d.x, cy = c.y - d.y;
  const double bc = bx * cy, cb = cx * by, ca = cx * ay, ac = ax * cy, ab = ax * by, ba = bx * ay;
  const double a_lift = ax * ax + ay * ay, b_lift = bx * bx + by * by, c_lift = cx * cx + cy * cy;
  const double det = a_lift * (bc - cb) + b_lift * (ca - ac) + c_lift * (ab - ba);
  const double terms = (std::fabs(bc) + std::fabs(cb)) * a_lift + (std::fabs(ca) + std::fabs(ac)) * b_lift +
                       (std::fabs(ab) + std::fabs(ba)) * c_lift;
  const double bound = (10 + 96 * kEps) * kEps * terms;
  if (det > bound) return 1;
  if (-det > bound) return -1;
  return exact_in_circle(a, b, c, d);
}

/// Edges of a subdivision of the plane. A directed edge e and its reverse e ^ 1 stand side by side; around the origin of
/// an edge its neighbours form a ring, linked both ways.
class Subdivision {
 public:
  explicit Subdivision(const std::vector<Point>& points) : points_(points) {
    const size_t most = 6 * points.size() + 6;
    origin_.reserve(most);
    next_.reserve(most);
    previous_.reserve(most);
  }

  int32_t origin(int32_t e) const { return origin_[size_t(e)]; }
  int32_t destination(int32_t e) const { return origin_[size_t(e ^ 1)]; }
  const std::vector<int32_t>& origins() const { return origin_; }

  /// Triangulates the points [begin, end), sorted and distinct; gives the edges of the hull that leave the leftmost point
  /// (counter-clockwise) and the rightmost (clockwise).
  struct Ends {
    int32_t left, right;
  };
  Ends triangulate(int32_t begin, int32_t end) {
    if (end - begin == 2) {
      const int32_t e = make(begin, begin + 1);
      return {e, e ^ 1};
    }
    if (end - begin == 3) return three(begin);
    const int32_t middle = begin + (end - begin) / 2;
    const Ends left = triangulate(begin, middle), right = triangulate(middle, end);
    return merge(left, right);
  }

 private:
  const Point& at(int32_t point) const { return points_[size_t(point)]; }
  int32_t next(int32_t e) const { return next_[size_t(e)]; }          // counter-clockwise around the origin
  int32_t previous(int32_t e) const { return previous_[size_t(e)]; }  // clockwise
  int32_t left_next(int32_t e) const { return previous(e ^ 1); }      // along the face to the left
  int32_t right_previous(int32_t e) const { return next(e ^ 1); }     // along the face to the right, backwards

  bool right_of(int32_t point, int32_t e) const { return turn(at(point), at(destination(e)), at(origin(e))) > 0; }
  bool left_of(int32_t point, int32_t e) const { return turn(at(point), at(origin(e)), at(destination(e))) > 0; }

  int32_t make(int32_t from, int32_t to) {
    int32_t e = free_;
    if (e >= 0) {
      free_ = next_[size_t(e)];
    } else {
      e = int32_t(origin_.size());
      origin_.resize(size_t(e) + 2);
      next_.resize(size_t(e) + 2);
      previous_.resize(size_t(e) + 2);
    }
    origin_[size_t(e)] = from;
    origin_[size_t(e ^ 1)] = to;
    next_[size_t(e)] = previous_[size_t(e)] = e;
    next_[size_t(e ^ 1)] = previous_[size_t(e ^ 1)] = e ^ 1;
    return e;
  }

  /// Puts e, alone at its origin, into the ring after `after`.
  void insert(int32_t e, int32_t after) {
    const int32_t then = next(after);
    next_[size_t(after)] = previous_[size_t(then)] = e;
    previous_[size_t(e)] = after;
    next_[size_t(e)] = then;
  }
  void leave(int32_t e) {
    next_[size_t(previous(e))] = next(e);
    previous_[size_t(next(e))] = previous(e);
  }

  /// A new edge from the end of a to the start of b, in the face to the left of both.
  int32_t connect(int32_t a, int32_t b) {
    const int32_t e = make(destination(a), origin(b));
    insert(e, left_next(a));
    insert(e ^ 1, b);
    return e;
  }

  void remove(int32_t e) {
    leave(e);
    leave(e ^ 1);
    origin_[size_t(e)] = origin_[size_t(e ^ 1)] = -1;
    next_[size_t(e & ~1)] = free_;
    free_ = e & ~1;
  }

  Ends three(int32_t begin) {
    const int32_t a = make(begin, begin + 1), b = make(begin + 1, begin + 2);
    insert(b, a ^ 1);
    const int side = turn(at(begin), at(begin + 1), at(begin + 2));
    if (side == 0) return {a, b ^ 1};
    const int32_t c = connect(b, a);
    return side > 0 ? Ends{a, b ^ 1} : Ends{c ^ 1, c};
  }

  Ends merge(Ends left, Ends right) {
    int32_t l = left.right, r = right.left;  // walk down to the lower common tangent
    for (;;) {
      if (left_of(origin(r), l))
        l = left_next(l);
      else if (right_of(origin(l), r))
        r = right_previous(r);
      else
        break;
    }
    int32_t base = connect(r ^ 1, l);
    if (origin(l) == origin(left.left)) left.left = base ^ 1;
    if (origin(r) == origin(right.right)) right.right = base;
    for (;;) {
      const auto above = [&](int32_t e) { return right_of(destination(e), base); };
      int32_t left_corner = next(base ^ 1);
      if (above(left_corner))
        while (in_circle(at(destination(base)), at(origin(base)), at(destination(left_corner)),
                         at(destination(next(left_corner)))) > 0) {
          const int32_t then = next(left_corner);
          remove(left_corner);
          left_corner = then;
        }
      int32_t right_corner = previous(base);
      if (above(right_corner))
        while (in_circle(at(destination(base)), at(origin(base)), at(destination(right_corner)),
                         at(destination(previous(right_corner)))) > 0) {
          const int32_t then = previous(right_corner);
          remove(right_corner);
          right_corner = then;
        }
      const bool from_left = above(left_corner), from_right = above(right_corner);
      if (!from_left && !from_right) break;
      if (!from_left || (from_right && in_circle(at(destination(left_corner)), at(origin(left_corner)),
                                                 at(origin(right_corner)), at(destination(right_corner))) > 0))
        base = connect(right_corner, base ^ 1);
      else
        base = connect(base ^ 1, left_corner ^ 1);
    }
    return {left.left, right.right};
  }

  const std::vector<Point>& points_;
  std::vector<int32_t> origin_, next_, previous_;  // origin -1: the edge is gone
  int32_t free_ = -1;
};

/// Both directions of the triangulation's edges as (row, column), by the points' own indices, in no order.
template <class T>
void triangulate(const T* positions, int64_t begin, int64_t end, std::vector<std::pair<int32_t, int32_t>>& edges) {
  std::vector<int32_t> order(size_t(end - begin));
  std::iota(order.begin(), order.end(), int32_t(begin));
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const T *p = positions + 2 * int64_t(a), *q = positions + 2 * int64_t(b);
    return p[0] != q[0] ? p[0] < q[0] : p[1] != q[1] ? p[1] < q[1] : a < b;
  });
  order.erase(std::unique(order.begin(), order.end(),
                          [&](int32_t a, int32_t b) {
                            const T *p = positions + 2 * int64_t(a), *q = positions + 2 * int64_t(b);
                            return p[0] == q[0] && p[1] == q[1];
                          }),
              order.end());
  if (order.size() < 2) return;
  // In units of about the largest coordinate, a power of two, so that determinants neither overflow nor vanish.
  double largest = 0;
  for (const int32_t i : order)
    for (int c = 0; c < 2; ++c) largest = std::max(largest, std::fabs(double(positions[2 * int64_t(i) + c])));
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  const auto scaled = [&](int32_t i, int c) { return std::ldexp(double(positions[2 * int64_t(i) + c]), -exponent); };
  std::vector<Point> points(order.size());
  for (size_t i = 0; i < order.size(); ++i) points[i] = {scaled(order[i], 0), scaled(order[i], 1)};
  Subdivision plane(points);
  plane.triangulate(0, int32_t(points.size()));
  const std::vector<int32_t>& origins = plane.origins();
  edges.reserve(origins.size());
  for (size_t e = 0; e < origins.size(); ++e)
    if (origins[e] >= 0) edges.emplace_back(order[size_t(origins[e])], order[size_t(origins[e ^ 1])]);
}

}  // namespace

Graph delaunay_graph(const Tensor& positions, const Tensor& node_offsets) {
  const std::vector<int64_t> offsets = node_offsets_of("delaunay_graph", positions, node_offsets);
  check(positions.dim(1) == 2, "delaunay_graph: positions has shape {} but needs [points, 2]", positions.shape());
  const int64_t n = positions.dim(0), graphs = int64_t(offsets.size()) - 1;
  std::vector<std::vector<std::pair<int32_t, int32_t>>> edges(static_cast<size_t>(graphs));
  Tensor rowptr = Tensor::empty(Shape{n + 1}, DType::i64);
  int64_t* rows = rowptr.mutable_data<int64_t>();
  std::fill_n(rows, n + 1, 0);
  with_float(positions.dtype(), "delaunay_graph", [&]<class T>() {
    const T* p = positions.data<T>();
    for (int64_t i = 0; i < positions.numel(); ++i)
      check(std::fabs(double(p[i])) <= 1e60, "delaunay_graph: the position of point {} is {} in dimension {}, beyond 1e60",
            i / 2, double(p[i]), i % 2);
    parallel_for(graphs, 1, [&](int64_t first, int64_t last) {
      for (int64_t g = first; g < last; ++g) triangulate(p, offsets[size_t(g)], offsets[size_t(g) + 1], edges[size_t(g)]);
    });
  });
  for (const auto& part : edges)
    for (const auto& [row, column] : part) ++rows[row + 1];
  for (int64_t i = 0; i < n; ++i) rows[i + 1] += rows[i];
  Tensor col = Tensor::empty(Shape{rows[n]}, DType::i32);
  int32_t* cols = col.mutable_data<int32_t>();
  parallel_for(graphs, 1, [&](int64_t first, int64_t last) {
    for (int64_t g = first; g < last; ++g) {
      const int64_t begin = offsets[size_t(g)], end = offsets[size_t(g) + 1];
      std::vector<int64_t> at(rows + begin, rows + end);
      for (const auto& [row, column] : edges[size_t(g)]) cols[at[size_t(row - begin)]++] = column;
      for (int64_t i = begin; i < end; ++i) std::sort(cols + rows[i], cols + rows[i + 1]);
    }
  });
  return GraphState::make(n, n, rowptr, col, Tensor());
}

}  // namespace tessera
