#include "tessera/sparse/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tessera/core/parallel.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

Tensor i32(const std::vector<int32_t>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); }
Tensor i64(const std::vector<int64_t>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); }

/// The rows of a list by a stable comparison sort of (row, position).
struct Rows {
  std::vector<int64_t> rowptr, id;
  std::vector<int32_t> col;
};
Rows naive_rows(const std::vector<int32_t>& key, const std::vector<int32_t>& value, const std::vector<int64_t>& id,
                int64_t num_keys) {
  std::vector<size_t> order(key.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key[a] < key[b]; });
  Rows rows;
  rows.rowptr.assign(size_t(num_keys) + 1, 0);
  for (int32_t k : key) ++rows.rowptr[size_t(k) + 1];
  for (size_t k = 0; k < size_t(num_keys); ++k) rows.rowptr[k + 1] += rows.rowptr[k];
  for (size_t i : order) {
    rows.col.push_back(value[i]);
    rows.id.push_back(id[i]);
  }
  return rows;
}

std::vector<int64_t> ids_of(const Graph& graph) {
  if (graph.edge_id().defined()) return graph.edge_id().to_vector<int64_t>();
  std::vector<int64_t> ids(static_cast<size_t>(graph.num_edges()));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  return ids;
}

void expect_rows(const Graph& graph, const Rows& rows) {
  EXPECT_EQ(graph.rowptr().to_vector<int64_t>(), rows.rowptr);
  EXPECT_EQ(graph.col().to_vector<int32_t>(), rows.col);
  EXPECT_EQ(ids_of(graph), rows.id);
}

/// The naive rows of the list, and of its transpose made from those rows.
void expect_both_directions(const TwoSided& list) {
  SCOPED_TRACE(list.name);
  const Graph graph = list.graph();
  std::vector<int64_t> ids(list.src.size());
  std::iota(ids.begin(), ids.end(), int64_t{0});
  const Rows rows = naive_rows(list.dst, list.src, ids, list.num_dst);
  expect_rows(graph, rows);
  std::vector<int32_t> row_of;
  for (int64_t d = 0; d < list.num_dst; ++d)
    row_of.insert(row_of.end(), size_t(rows.rowptr[size_t(d) + 1] - rows.rowptr[size_t(d)]), int32_t(d));
  expect_rows(graph.transpose(), naive_rows(rows.col, row_of, rows.id, list.num_src));
}

TEST(Graph, RowsAndTransposeEqualAStableSort) {
  for (const TwoSided& list : two_sided_graphs()) expect_both_directions(list);
}

TEST(Graph, TwoLevelSortEqualsAStableSort) {
  const Restore restore;
  const TwoSided list = random_two_sided(5000, 70000, 400000, 5), few = random_two_sided(70000, 3, 300000, 6);
  for (int threads : {1, 2, 3}) {
    set_threads(threads);
    expect_both_directions(list);
    expect_both_directions(few);
  }
}

TEST(Graph, SortedListKeepsPositions) {
  const Graph graph = Graph::from_coo(i32({5, 0, 1, 2}), i32({1, 1, 3, 3}), 6, 5);
  EXPECT_FALSE(graph.edge_id().defined());
  EXPECT_EQ(graph.rowptr().to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 2, 2, 4, 4}));
  EXPECT_EQ(graph.col().to_vector<int32_t>(), (std::vector<int32_t>{5, 0, 1, 2}));
}

TEST(Graph, KeepsItsOwnArrays) {
  Tensor src = i32({0, 1}), dst = i32({0, 1});
  const Graph graph = Graph::from_coo(src, dst, 2, 2);
  src.mutable_data<int32_t>()[0] = 100;
  EXPECT_EQ(graph.col().to_vector<int32_t>(), (std::vector<int32_t>{0, 1}));
}

TEST(Graph, EdgeIndexTakesBothWidths) {
  const Graph wide = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 2, 1, 0, 0}, Shape{2, 3}), 3);
  const Graph narrow = Graph::from_edge_index(Tensor::from<int32_t>({0, 1, 2, 1, 0, 0}, Shape{2, 3}), 3);
  for (const Graph& graph : {wide, narrow}) {
    EXPECT_EQ(graph.rowptr().to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 3, 3}));
    EXPECT_EQ(graph.col().to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 0}));
    EXPECT_EQ(graph.edge_id().to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 0}));
    EXPECT_EQ(graph.in_degree().to_vector<int32_t>(), (std::vector<int32_t>{2, 1, 0}));
    EXPECT_EQ(graph.transpose().in_degree().to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 1}));
  }
}

/// Case H12: the transpose of a compressed matrix with an empty row, for both widths and any thread count.
TEST(Graph, TransposeOfRowsIsAStableCountingSort) {
  std::vector<int32_t> col;
  for (int row = 0; row < 5; ++row)
    for (int32_t c = 0; c < 4; ++c) col.push_back(c);
  const Tensor rowptr = i64({0, 4, 8, 8, 12, 16, 20});
  const Restore restore;
  for (int threads : {1, 2, 3}) {
    set_threads(threads);
    for (const Tensor& columns : {i32(col), i64(std::vector<int64_t>(col.begin(), col.end()))}) {
      const Graph reversed = Graph::from_csr(rowptr, columns, 4).transpose();
      EXPECT_EQ(reversed.rowptr().to_vector<int64_t>(), (std::vector<int64_t>{0, 5, 10, 15, 20}));
      EXPECT_EQ(reversed.col().to_vector<int32_t>(),
                (std::vector<int32_t>{0, 1, 3, 4, 5, 0, 1, 3, 4, 5, 0, 1, 3, 4, 5, 0, 1, 3, 4, 5}));
      EXPECT_EQ(reversed.edge_id().to_vector<int64_t>(),
                (std::vector<int64_t>{0, 4, 8, 12, 16, 1, 5, 9, 13, 17, 2, 6, 10, 14, 18, 3, 7, 11, 15, 19}));
    }
  }
}

TEST(Graph, TransposeIsKeptAndReturns) {
  Graph reversed;
  {
    const Graph graph = random_two_sided(30, 20, 200, 7).graph();
    reversed = graph.transpose();
    EXPECT_TRUE(reversed.is(graph.transpose()));
    EXPECT_TRUE(reversed.transpose().is(graph));
    EXPECT_EQ(reversed.num_src(), 20);
    EXPECT_EQ(reversed.num_dst(), 30);
  }
  // The other direction lives as long as either.
  EXPECT_EQ(reversed.transpose().num_dst(), 20);
  EXPECT_EQ(reversed.transpose().in_degree().numel(), 20);
}

TEST(Graph, ThreadsShareOneTranspose) {
  for (int round = 0; round < 20; ++round) {
    const Graph graph = random_two_sided(300, 200, 2000, 8).graph();
    std::vector<Graph> seen(4);
    std::vector<const void*> arrays(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        seen[i] = graph.transpose();
        arrays[i] = seen[i].col().raw();
        graph.in_degree();
      });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 1; i < 4; ++i) {
      EXPECT_TRUE(seen[i].is(seen[0]));
      EXPECT_EQ(arrays[i], arrays[0]);
    }
  }
}

/// Case H13 and every other refusal.
TEST(Graph, Errors) {
  const auto coo = [](const Tensor& src, const Tensor& dst, int64_t num_src, int64_t num_dst) {
    return [=] { Graph::from_coo(src, dst, num_src, num_dst); };
  };
  const auto csr = [](const Tensor& rowptr, const Tensor& col) { return [=] { Graph::from_csr(rowptr, col, 3); }; };
  for (const int64_t bad : {3, 100, -1, -4}) {
    const std::string text = "InvalidArgument: graph: src[0] is " + std::to_string(bad) + " but needs to be in [0, 3)";
    verify_errors({{coo(i32({int32_t(bad)}), i32({0}), 3, 3), text}, {coo(i64({bad}), i64({0}), 3, 3), text}});
  }
  verify_errors(
      {{coo(i32({0, 1, 2, 3}), i32({0, 1, 2, 7}), 5, 5), "InvalidArgument: graph: dst[3] is 7 but needs to be in [0, 5)"},
       {coo(i64({0, -1}), i64({9, 9}), 5, 5), "InvalidArgument: graph: src[1] is -1 but needs to be in [0, 5)"},
       {coo(i64({0, 1}), i64({0, int64_t{1} << 32}), 5, 5),
        "InvalidArgument: graph: dst[1] is 4294967296 but needs to be in [0, 5)"},
       {coo(i32({0}), i32({0}), 0, 1), "InvalidArgument: graph: src[0] is 0 but needs to be in [0, 0)"},
       {coo(i32({0, 1, 2}), i32({0, 1, 2, 3}), 5, 5), "InvalidArgument: graph: src has 3 entries but dst has 4"},
       {coo(Tensor(), i32({0}), 5, 5), "InvalidArgument: graph: src is undefined"},
       {coo(i32({0}), Tensor::from<float>({0}, Shape{1}), 5, 5),
        "InvalidArgument: graph: dst has dtype f32 but needs i32 or i64"},
       {coo(i32({0}), Tensor::from<int32_t>({0}, Shape{1, 1}), 5, 5),
        "InvalidArgument: graph: dst has shape [1, 1] but needs one dimension"},
       {coo(i32({}), i32({}), int64_t{1} << 31, 5),
        "InvalidArgument: graph: num_src is 2147483648 but needs to be in [0, 2147483647]"},
       {coo(i32({}), i32({}), 5, -1), "InvalidArgument: graph: num_dst is -1 but needs to be in [0, 2147483647]"},
       {[] {
          Graph::from_edge_index(i32({0, 1}), 2);
        },
        "InvalidArgument: graph: edge_index has shape [2] but needs [2, E]"},
       {[] { Graph::from_edge_index(Tensor(), 2); }, "InvalidArgument: graph: edge_index is undefined"},
       {[] {
          Graph::from_edge_index(Tensor::from<int32_t>({0, 5}, Shape{2, 1}), 2);
        },
        "InvalidArgument: graph: dst[0] is 5 but needs to be in [0, 2)"},
       {csr(i64({1, 2}), i32({0, 0})), "InvalidArgument: graph: rowptr[0] is 1 but needs to be 0"},
       {csr(i64({0, 2, 1}), i32({0})),
        "InvalidArgument: graph: rowptr[2] is 1 but rowptr[1] before it is 2; offsets must not fall"},
       {csr(i64({0, 2}), i32({0})), "InvalidArgument: graph: rowptr ends at 2 but col has 1 entries"},
       {csr(i64({0, 1}), i32({3})), "InvalidArgument: graph: col[0] is 3 but needs to be in [0, 3)"},
       {csr(i32({0, 1}), i32({0})), "InvalidArgument: graph: rowptr has dtype i32 but needs i64"},
       {csr(i64({}), i32({})), "InvalidArgument: graph: rowptr has shape [0] but needs [num_dst + 1]"},
       {[] { Graph().num_edges(); }, "InvalidArgument: graph: an undefined graph was used"}});
}

}  // namespace
}  // namespace tessera::test
