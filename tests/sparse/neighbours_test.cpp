#include "tessera/sparse/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

struct Points {
  const char* name;
  Tensor positions;
};

// Coordinates of few values make many ties.
std::vector<Points> point_sets() {
  std::vector<Points> out;
  for (const int64_t dims : {1, 2, 3, 5}) {
    out.push_back({"spread", random_seed({200, dims}, DType::f32, 7)});
    Tensor grid = Tensor::empty({150, dims}, DType::f64);
    const Tensor noise = random_seed({150, dims}, DType::f64, 8);
    for (int64_t i = 0; i < grid.numel(); ++i) grid.mutable_data<double>()[i] = std::round(noise.data<double>()[i] * 2);
    out.push_back({"few places", grid});
  }
  out.push_back({"one place", zeros({100, 2})});
  out.push_back({"one point", zeros({1, 2})});
  out.push_back({"nothing", zeros({0, 2})});
  return out;
}

std::vector<int64_t> bounds_of(const NeighbourOptions& options, int64_t n) {
  return options.node_offsets.defined() ? options.node_offsets.to_vector<int64_t>() : std::vector<int64_t>{0, n};
}

double squared(const Tensor& positions, int64_t i, int64_t j) {
  double sum = 0;
  with_float(positions.dtype(), "squared", [&]<class T>() {
    const T* p = positions.data<T>();
    for (int64_t d = 0; d < positions.dim(1); ++d) {
      const double difference = double(p[i * positions.dim(1) + d]) - double(p[j * positions.dim(1) + d]);
      sum += difference * difference;
    }
  });
  return sum;
}

/// All pairs: for each point the others of its graph, nearest first, of equal distances the lower index.
std::vector<std::vector<std::pair<double, int32_t>>> all_pairs(const Tensor& positions, const NeighbourOptions& options) {
  const int64_t n = positions.dim(0);
  std::vector<std::vector<std::pair<double, int32_t>>> out(static_cast<size_t>(n));
  const std::vector<int64_t> bounds = bounds_of(options, n);
  for (size_t g = 0; g + 1 < bounds.size(); ++g)
    for (int64_t i = bounds[g]; i < bounds[g + 1]; ++i) {
      for (int64_t j = bounds[g]; j < bounds[g + 1]; ++j)
        if (i != j || options.loops) out[size_t(i)].emplace_back(squared(positions, i, j), int32_t(j));
      std::sort(out[size_t(i)].begin(), out[size_t(i)].end());
    }
  return out;
}

void expect_rows(const Graph& graph, const std::vector<std::vector<int32_t>>& rows) {
  ASSERT_EQ(graph.num_dst(), int64_t(rows.size()));
  EXPECT_FALSE(graph.edge_id().defined());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t* rowptr = graph.rowptr().data<int64_t>();
    const int32_t* col = graph.col().data<int32_t>();
    EXPECT_EQ(std::vector<int32_t>(col + rowptr[i], col + rowptr[i + 1]), rows[i]) << "row " << i;
  }
}

std::vector<NeighbourOptions> variants(int64_t n) {
  const Tensor parts = Tensor::from<int64_t>({0, 0, n / 3, n / 3, n - n / 4, n}, {6});
  return {{}, {.loops = true}, {.node_offsets = parts}, {.loops = true, .node_offsets = parts}};
}

TEST(Neighbours, KnnEqualsAllPairs) {
  for (const Points& set : point_sets())
    for (const NeighbourOptions& options : variants(set.positions.dim(0)))
      for (const int64_t k : {0, 1, 4, 1000}) {
        SCOPED_TRACE(testing::Message() << set.name << " " << set.positions.dim(1) << " dimensions, k " << k);
        std::vector<std::vector<int32_t>> expected;
        for (const auto& row : all_pairs(set.positions, options)) {
          expected.emplace_back();
          for (size_t i = 0; i < std::min(row.size(), size_t(k)); ++i) expected.back().push_back(row[i].second);
        }
        expect_rows(knn_graph(set.positions, k, options), expected);
      }
}

TEST(Neighbours, RadiusEqualsAllPairs) {
  for (const Points& set : point_sets())
    for (const NeighbourOptions& options : variants(set.positions.dim(0)))
      for (const double radius : {0.0, 1.0, 1.5, 100.0})
        for (const int64_t most : {-1, 0, 3}) {
          SCOPED_TRACE(testing::Message() << set.name << " " << set.positions.dim(1) << " dimensions, " << radius << " "
                                          << most);
          std::vector<std::vector<int32_t>> expected;
          for (const auto& row : all_pairs(set.positions, options)) {
            expected.emplace_back();
            for (const auto& [distance, point] : row)
              if (distance < radius * radius && (most < 0 || int64_t(expected.back().size()) < most))
                expected.back().push_back(point);
            std::sort(expected.back().begin(), expected.back().end());
          }
          expect_rows(radius_graph(set.positions, radius, most, options), expected);
        }
}

TEST(Neighbours, TheSameForEveryThreadCount) {
  const Tensor positions = random_seed({20000, 2}, DType::f32, 3);
  const int before = threads();
  std::vector<std::vector<int32_t>> columns;
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    columns.push_back(knn_graph(positions, 6).col().to_vector<int32_t>());
    columns.push_back(radius_graph(positions, 0.02).col().to_vector<int32_t>());
  }
  set_threads(before);
  for (size_t i = 2; i < columns.size(); ++i) EXPECT_EQ(columns[i], columns[i % 2]);
}

// Quadratic work would take hours.
TEST(Neighbours, ManyPointsAtOnePlace) {
  const int64_t n = 200000;
  const Graph graph = knn_graph(zeros({n, 2}), 3);
  EXPECT_EQ(graph.num_edges(), 3 * n);
  const int32_t* last = graph.col().data<int32_t>() + graph.num_edges() - 3;
  EXPECT_EQ(std::vector<int32_t>(last, last + 3), (std::vector<int32_t>{0, 1, 2}));
}

TEST(Neighbours, LengthsAreByEdgeId) {
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 2, 0, 1}, {2, 3}), 3);
  const Tensor positions = Tensor::from<float>({0, 0, 3, 4, 6, 8}, {3, 2});
  EXPECT_EQ(edge_lengths(graph, positions).to_vector<float>(), (std::vector<float>{10, 5, 0}));
}

TEST(Neighbours, Errors) {
  const Tensor x = zeros({3, 2});
  const auto offsets = [](std::initializer_list<int64_t> values) {
    return NeighbourOptions{.node_offsets = Tensor::from<int64_t>(values, {int64_t(values.size())})};
  };
  Tensor bad = zeros({3, 2}, DType::f64);
  bad.mutable_data<double>()[3] = NAN;
  verify_errors({
      {[&] { knn_graph(Tensor(), 1); }, "InvalidArgument: knn_graph: positions has 0 dimensions but needs 2"},
      {[&] { knn_graph(zeros({3}), 1); }, "InvalidArgument: knn_graph: positions has 1 dimensions but needs 2"},
      {[&] {
         knn_graph(zeros({3, 0}), 1);
       },
       "InvalidArgument: knn_graph: positions has shape [3, 0] but needs a column for each dimension"},
      {[&] {
         knn_graph(zeros({3, 2}, DType::i64), 1);
       },
       "Unsupported: knn_graph: dtype i64 is not supported, use f32 or f64"},
      {[&] { knn_graph(x, -1); }, "InvalidArgument: knn_graph: k is -1 but needs to be 0 or more"},
      {[&] { knn_graph(bad, 1); },
       "InvalidArgument: knn_graph: the position of point 1 is nan in dimension 1 but needs to be finite"},
      {[&] { radius_graph(x, -1); }, "InvalidArgument: radius_graph: radius is -1 but needs to be 0 or more"},
      {[&] { radius_graph(x, NAN); }, "InvalidArgument: radius_graph: radius is nan but needs to be 0 or more"},
      {[&] {
         knn_graph(x, 1, offsets({1, 3}));
       },
       "InvalidArgument: knn_graph: node_offsets[0] is 1 but needs to be 0"},
      {[&] {
         knn_graph(x, 1, offsets({0, 3, 2, 3}));
       },
       "InvalidArgument: knn_graph: node_offsets[2] is 2, below the 3 before it"},
      {[&] {
         radius_graph(x, 1, -1, offsets({0, 2}));
       },
       "InvalidArgument: radius_graph: node_offsets ends at 2 but there are 3 points"},
      {[&] { knn_graph(x, 1, {.node_offsets = zeros({2})}); },
       "InvalidArgument: knn_graph: node_offsets has shape [2] and dtype f32 but needs [graphs + 1] and i64"},
      {[&] {
         edge_lengths(knn_graph(x, 1), zeros({2, 2}));
       },
       "InvalidArgument: edge_lengths: positions has 2 rows but the graph has 3 nodes"},
      {[&] { edge_lengths(Graph(), x); }, "InvalidArgument: edge_lengths: the graph needs to be square"},
  });
}

}  // namespace
}  // namespace tessera::test
