#include "tessera/sparse/delaunay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

using Wide = __int128;

struct Place {
  int64_t x, y;
  auto operator<=>(const Place&) const = default;
};
using Pairs = std::set<std::pair<int32_t, int32_t>>;

Tensor positions_of(const std::vector<Place>& places, double scale = 1, double shift = 0) {
  Tensor out = Tensor::empty({int64_t(places.size()), 2}, DType::f64);
  double* p = out.mutable_data<double>();
  for (const Place& place : places) {
    *p++ = double(place.x) * scale + shift;
    *p++ = double(place.y) * scale + shift;
  }
  return out;
}

int sign(Wide value) { return value > 0 ? 1 : value < 0 ? -1 : 0; }

int turn(const Place& a, const Place& b, const Place& c) {
  return sign(Wide(b.x - a.x) * (c.y - a.y) - Wide(b.y - a.y) * (c.x - a.x));
}

/// Positive when d is inside the circle through a, b, c, which turn left.
int inside(const Place& a, const Place& b, const Place& c, const Place& d) {
  const auto cross = [&](const Place& p, const Place& q) {
    return Wide(p.x - d.x) * (q.y - d.y) - Wide(q.x - d.x) * (p.y - d.y);
  };
  const auto lift = [&](const Place& p) { return Wide(p.x - d.x) * (p.x - d.x) + Wide(p.y - d.y) * (p.y - d.y); };
  return sign(lift(a) * cross(b, c) + lift(b) * cross(c, a) + lift(c) * cross(a, b));
}

Pairs pairs_of(const Graph& graph) {
  Pairs out;
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  EXPECT_FALSE(graph.edge_id().defined());
  for (int32_t i = 0; i < graph.num_dst(); ++i) {
    EXPECT_TRUE(std::is_sorted(col + rowptr[i], col + rowptr[i + 1])) << i;
    for (int64_t k = rowptr[i]; k < rowptr[i + 1]; ++k) EXPECT_TRUE(out.emplace(i, col[k]).second) << i << " " << col[k];
  }
  return out;
}

bool crosses(const Place& a, const Place& b, const Place& c, const Place& d) {
  return turn(a, b, c) * turn(a, b, d) < 0 && turn(c, d, a) * turn(c, d, b) < 0;
}

bool between(const Place& a, const Place& b, const Place& c) {
  return turn(a, b, c) == 0 && Wide(c.x - a.x) * (b.x - a.x) + Wide(c.y - a.y) * (b.y - a.y) > 0 &&
         Wide(c.x - b.x) * (a.x - b.x) + Wide(c.y - b.y) * (a.y - b.y) > 0;
}

/// Whether some disc has a and b on its rim and no point inside: for that every point to the left must see a circle
/// through it that holds none of those to the right.
bool has_empty_disc(const std::vector<Place>& places, const Place& a, const Place& b) {
  for (const Place& left : places) {
    if (turn(a, b, left) <= 0) continue;
    for (const Place& right : places)
      if (turn(a, b, right) < 0 && inside(a, b, left, right) > 0) return false;
  }
  return true;
}

/// The edges are those of a triangulation of the distinct places (as many as there can be without a crossing, 3 n - 3 less
/// those on the hull) and each has an empty disc, so it is a Delaunay triangulation.
void expect_delaunay(const std::vector<Place>& places, const Graph& graph, bool check_discs = true) {
  const Pairs pairs = pairs_of(graph);
  std::map<Place, int32_t> first;
  for (size_t i = 0; i < places.size(); ++i) first.emplace(places[i], int32_t(i));
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (const auto& [i, j] : pairs) {
    EXPECT_TRUE(pairs.contains({j, i}));
    EXPECT_NE(i, j);
    EXPECT_EQ(first[places[size_t(i)]], i) << "a repeated point has an edge";
    if (i < j) edges.emplace_back(i, j);
  }
  std::vector<Place> distinct;
  for (const auto& [place, index] : first) distinct.push_back(place);
  bool flat = true;
  for (size_t i = 2; i < distinct.size(); ++i) flat = flat && turn(distinct[0], distinct[1], distinct[i]) == 0;
  if (flat) {
    ASSERT_EQ(edges.size(), distinct.empty() ? 0 : distinct.size() - 1);
    for (size_t i = 0; i + 1 < distinct.size(); ++i)
      EXPECT_TRUE(pairs.contains({first[distinct[i]], first[distinct[i + 1]]}));
    return;
  }
  size_t on_hull = 0;  // neighbours along the hull, with everything to one side and nothing between
  for (const Place& a : distinct)
    for (const Place& b : distinct) {
      if (a == b) continue;
      on_hull += std::all_of(distinct.begin(), distinct.end(),
                             [&](const Place& c) { return turn(a, b, c) >= 0 && !between(a, b, c); });
    }
  EXPECT_EQ(edges.size(), 3 * distinct.size() - 3 - on_hull);
  for (size_t i = 0; i < edges.size(); ++i) {
    const Place &a = places[size_t(edges[i].first)], &b = places[size_t(edges[i].second)];
    if (check_discs) {
      EXPECT_TRUE(has_empty_disc(distinct, a, b)) << edges[i].first << " " << edges[i].second;
    }
    for (const Place& c : distinct) EXPECT_FALSE(between(a, b, c));
    for (size_t j = 0; j < i; ++j)
      EXPECT_FALSE(crosses(a, b, places[size_t(edges[j].first)], places[size_t(edges[j].second)]));
  }
}

std::vector<Place> random_places(size_t count, int64_t side, uint64_t seed) {
  const Tensor noise = random_seed({int64_t(count), 2}, DType::f64, seed);
  std::vector<Place> out;
  for (size_t i = 0; i < count; ++i)
    out.push_back({int64_t(std::floor(noise.data<double>()[2 * i] * double(side))),
                   int64_t(std::floor(noise.data<double>()[2 * i + 1] * double(side)))});
  return out;
}

TEST(Delaunay, RandomPoints) {
  for (const size_t count : {3, 4, 5, 7, 20, 60})
    for (uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(testing::Message() << count << " points, seed " << seed);
      const std::vector<Place> places = random_places(count, 1'000'000, 100 * count + seed);
      expect_delaunay(places, delaunay_graph(positions_of(places)));
    }
}

// Circles through many points, points on lines, places that repeat.
TEST(Delaunay, FewPlaces) {
  for (const int64_t side : {1, 2, 4, 8})
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(testing::Message() << "side " << side << ", seed " << seed);
      const std::vector<Place> places = random_places(40, side, 50 * uint64_t(side) + seed);
      expect_delaunay(places, delaunay_graph(positions_of(places)));
    }
}

TEST(Delaunay, AGridAndNearlyAGrid) {
  std::vector<Place> grid;
  for (int64_t i = 0; i < 49; ++i) grid.push_back({i / 7, i % 7});
  expect_delaunay(grid, delaunay_graph(positions_of(grid)));
  expect_delaunay(grid, delaunay_graph(positions_of(grid, 0.125, 1e9)));
  // Thirds are rounded, so lines and circles are broken by less than a sum in double could tell. As multiples of 2^-52
  // they are integers again, of which areas fit 128 bits (circles do not).
  Tensor thirds = positions_of(grid);
  for (int64_t i = 0; i < thirds.numel(); ++i) thirds.mutable_data<double>()[i] = 1 + thirds.data<double>()[i] / 3;
  std::vector<Place> exact;
  for (int64_t i = 0; i < 49; ++i)
    exact.push_back(
        {int64_t(std::ldexp(thirds.data<double>()[2 * i], 52)), int64_t(std::ldexp(thirds.data<double>()[2 * i + 1], 52))});
  expect_delaunay(exact, delaunay_graph(thirds), false);
}

TEST(Delaunay, OnOneLineAFewPointsOrNone) {
  expect_delaunay({}, delaunay_graph(positions_of({})));
  expect_delaunay({{5, 5}}, delaunay_graph(positions_of({{5, 5}})));
  expect_delaunay({{5, 5}, {5, 5}}, delaunay_graph(positions_of({{5, 5}, {5, 5}})));
  expect_delaunay({{5, 5}, {1, 9}}, delaunay_graph(positions_of({{5, 5}, {1, 9}})));
  std::vector<Place> line;
  for (int64_t i = 0; i < 30; ++i) line.push_back({3 * ((7 * i) % 30), -2 * ((7 * i) % 30)});
  expect_delaunay(line, delaunay_graph(positions_of(line)));
  for (Place& place : line) place.y = 4;
  expect_delaunay(line, delaunay_graph(positions_of(line)));
  for (Place& place : line) std::swap(place.x, place.y);
  expect_delaunay(line, delaunay_graph(positions_of(line)));
}

TEST(Delaunay, GraphsOfABatchAndThreadCounts) {
  const std::vector<Place> a = random_places(30, 1000, 1), b = random_places(50, 1000, 2);
  std::vector<Place> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const int before = threads();
  std::vector<std::vector<int32_t>> columns;
  for (const int count : {1, 3}) {
    set_threads(count);
    const Graph graph = delaunay_graph(positions_of(both), Tensor::from<int64_t>({0, 0, 30, 80, 80}, {5}));
    EXPECT_EQ(graph.rowptr().data<int64_t>()[30], delaunay_graph(positions_of(a)).num_edges());
    const Pairs alone = pairs_of(delaunay_graph(positions_of(b)));
    for (const auto& [i, j] : pairs_of(graph)) {
      EXPECT_EQ(i < 30, j < 30);
      EXPECT_TRUE(i < 30 || alone.contains({i - 30, j - 30}));
    }
    columns.push_back(graph.col().to_vector<int32_t>());
  }
  set_threads(before);
  EXPECT_EQ(columns[0], columns[1]);
}

TEST(Delaunay, ManyPoints) {
  const int64_t n = 50000;
  const Graph graph = delaunay_graph(random_seed({n, 2}, DType::f32, 5));
  EXPECT_GT(graph.num_edges(), 2 * (3 * n - 3 - 200));
  EXPECT_LE(graph.num_edges(), 2 * (3 * n - 6));
}

/// The same points in units that square to nothing.
TEST(Delaunay, AnyUnit) {
  const auto edges = [](double unit) {
    std::vector<double> p = {0, 0, 1, 0, 0, 1, 1, 1, 0.5, 0.25, 0.25, 0.75};
    for (double& c : p) c *= unit;
    return pairs_of(delaunay_graph(Tensor::from(p, {6, 2})));
  };
  EXPECT_EQ(edges(1).size(), 22u);
  for (const double unit : {0x1p-1000, 0x1p-600, 0x1p-270, 0x1p190}) EXPECT_EQ(edges(unit), edges(1)) << unit;
}

TEST(Delaunay, Errors) {
  Tensor bad = zeros({2, 2});
  bad.mutable_data<float>()[1] = std::numeric_limits<float>::infinity();
  Tensor large = zeros({2, 2}, DType::f64);
  large.mutable_data<double>()[2] = -1e61;
  verify_errors({
      {[&] {
         delaunay_graph(zeros({4, 3}));
       },
       "InvalidArgument: delaunay_graph: positions has shape [4, 3] but needs [points, 2]"},
      {[&] { delaunay_graph(bad); },
       "InvalidArgument: delaunay_graph: the position of point 0 is inf in dimension 1 but needs to be finite"},
      {[&] { delaunay_graph(large); },
       "InvalidArgument: delaunay_graph: the position of point 1 is -1e+61 in dimension 0, beyond 1e60"},
      {[&] {
         delaunay_graph(zeros({4, 2}), Tensor::from<int64_t>({0, 5}, {2}));
       },
       "InvalidArgument: delaunay_graph: node_offsets ends at 5 but there are 4 points"},
  });
}

}  // namespace
}  // namespace tessera::test
