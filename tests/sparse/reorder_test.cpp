#include "tessera/sparse/reorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/datasets/synthetic.h"
#include "tessera/sparse/spmm.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

constexpr Ordering kOrderings[] = {Ordering::degree, Ordering::rcm, Ordering::community};

Tensor i32(const std::vector<int32_t>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); }

Graph square(const std::vector<int32_t>& src, const std::vector<int32_t>& dst, int64_t nodes) {
  return Graph::from_coo(i32(src), i32(dst), nodes, nodes);
}

/// Source and destination of each edge id.
std::vector<std::pair<int32_t, int32_t>> ends(const Graph& graph) {
  std::vector<std::pair<int32_t, int32_t>> out(size_t(graph.num_edges()), {-1, -1});
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  for (int64_t d = 0; d < graph.num_dst(); ++d)
    for (int64_t i = rowptr[d]; i < rowptr[d + 1]; ++i) {
      const int64_t e = graph.edge_id().defined() ? graph.edge_id().data<int64_t>()[i] : i;
      out[size_t(e)] = {graph.col().data<int32_t>()[i], int32_t(d)};
    }
  return out;
}

void expect_renamed(const Graph& graph, const Reordered& r) {
  const int64_t nodes = graph.num_dst();
  const std::vector<int32_t> old_id = r.old_id.to_vector<int32_t>(), new_id = r.new_id.to_vector<int32_t>();
  ASSERT_EQ(int64_t(old_id.size()), nodes);
  ASSERT_EQ(int64_t(new_id.size()), nodes);
  EXPECT_EQ(int64_t(std::set<int32_t>(old_id.begin(), old_id.end()).size()), nodes);
  for (int64_t i = 0; i < nodes; ++i) EXPECT_EQ(new_id[size_t(old_id[size_t(i)])], i);
  ASSERT_EQ(r.graph.num_edges(), graph.num_edges());
  std::vector<std::pair<int32_t, int32_t>> expected = ends(graph);
  for (auto& [s, d] : expected) s = new_id[size_t(s)], d = new_id[size_t(d)];
  EXPECT_EQ(ends(r.graph), expected);
}

TEST(Reorder, EveryEdgeKeepsItsIdOnEveryGraph) {
  for (const EdgeList& g : graphs())
    for (const Ordering ordering : kOrderings) {
      SCOPED_TRACE(g.name + " " + std::to_string(int(ordering)));
      const Graph graph = TwoSided(g).graph();
      const Reordered r = reorder(graph, ordering);
      expect_renamed(graph, r);
      EXPECT_EQ(r.graph.transpose().num_edges(), graph.num_edges());
      // Rows keep their order, so that ties are broken alike; reversed graphs, whose ids do not rise along a row, too.
      const Graph reversed = graph.transpose();
      const Reordered back = reorder(reversed, r.old_id);
      expect_renamed(reversed, back);
      for (int64_t d = 0; d < graph.num_dst(); ++d) {
        const int64_t from = reversed.rowptr().data<int64_t>()[r.old_id.data<int32_t>()[d]];
        const int64_t to = back.graph.rowptr().data<int64_t>()[d], end = back.graph.rowptr().data<int64_t>()[d + 1];
        for (int64_t i = to; i < end; ++i)
          EXPECT_EQ(back.graph.edge_id().data<int64_t>()[i], reversed.edge_id().data<int64_t>()[from + i - to]);
      }
    }
}

/// Rows keep the order of their edges, so sums are the same bit by bit.
TEST(Reorder, SumsAreTheSameInTheOldOrder) {
  const SyntheticGraph edges = synthetic_graph({.nodes = 2000, .edges = 40000, .communities = 10});
  const Graph graph = Graph::from_coo(edges.src, edges.dst, 2000, 2000);
  Generator generator(1);
  const Tensor x = normal(Shape{2000, 17}, generator), weight = normal(Shape{40000}, generator);
  const Tensor expected = spmm(graph, x, Reduce::sum, {.weight = weight});
  for (const Ordering ordering : kOrderings) {
    const Reordered r = reorder(graph, ordering);
    const Tensor out = r.restore(spmm(r.graph, r.permute(x), Reduce::sum, {.weight = weight}));
    EXPECT_EQ(out.to_vector<float>(), expected.to_vector<float>());
  }
}

TEST(Reorder, DegreePutsTheMostEdgesFirst) {
  const Reordered r = reorder(square({0, 1, 3, 3, 2}, {3, 3, 1, 4, 3}, 6), Ordering::degree);
  EXPECT_EQ(r.old_id.to_vector<int32_t>(), (std::vector<int32_t>{3, 1, 0, 2, 4, 5}));
}

int64_t bandwidth(const Graph& graph) {
  int64_t most = 0;
  for (const auto& [s, d] : ends(graph)) most = std::max<int64_t>(most, std::abs(s - d));
  return most;
}

/// A shuffled path comes back as a path, a grid with about its short side, whatever the direction of edges.
TEST(Reorder, RcmFindsSmallBandwidths) {
  const auto shuffled = [](int64_t i, int64_t n) { return int32_t((i * 7919 + 13) % n); };
  for (const bool both : {false, true}) {
    std::vector<int32_t> src, dst;
    for (int64_t i = 0; i + 1 < 1000; ++i) {
      src.push_back(shuffled(i, 1000)), dst.push_back(shuffled(i + 1, 1000));
      if (both) src.push_back(dst[dst.size() - 1]), dst.push_back(shuffled(i, 1000));
    }
    EXPECT_EQ(bandwidth(reorder(square(src, dst, 1000), Ordering::rcm).graph), 1);
    src.clear(), dst.clear();
    for (int64_t y = 0; y < 50; ++y)
      for (int64_t x = 0; x < 8; ++x) {
        const int32_t here = shuffled(y * 8 + x, 400);
        if (x < 7) src.push_back(here), dst.push_back(shuffled(y * 8 + x + 1, 400));
        if (y < 49) src.push_back(here), dst.push_back(shuffled(y * 8 + x + 8, 400));
      }
    const Graph grid = square(src, dst, 400);
    EXPECT_GT(bandwidth(grid), 100);
    EXPECT_LE(bandwidth(reorder(grid, Ordering::rcm).graph), 12);
  }
}

/// The share of edges whose ends lie within a community's length of each other.
double near(const Graph& graph, int64_t length) {
  int64_t count = 0;
  for (const auto& [s, d] : ends(graph)) count += std::abs(s - d) < length;
  return double(count) / double(graph.num_edges());
}

TEST(Reorder, CommunitiesStandTogether) {
  const SyntheticGraph edges = synthetic_graph({.nodes = 20000, .edges = 600000, .communities = 40});
  const Graph graph = Graph::from_coo(edges.src, edges.dst, 20000, 20000);
  const Reordered r = reorder(graph, Ordering::community);
  EXPECT_LT(near(graph, 500), 0.1);
  EXPECT_GT(near(r.graph, 500), 0.75);  // of 0.8 that lie within one
  // Neighbours in the line are of one planted community, but for nodes whose few edges lead elsewhere: at random 39 of 40
  // would differ.
  const int32_t* planted = edges.community.data<int32_t>();
  const int32_t* old_id = r.old_id.data<int32_t>();
  int64_t changes = 0;
  for (int64_t i = 1; i < 20000; ++i) changes += planted[old_id[i]] != planted[old_id[i - 1]];
  EXPECT_LT(changes, 20000 / 10);
}

/// Many small communities, which are ordered among each other by levels: rings of cliques.
TEST(Reorder, LevelsOfCommunities) {
  constexpr int64_t kCliques = 500, kSize = 8, kNodes = kCliques * kSize;
  std::vector<int32_t> src, dst;
  const auto id = [](int64_t i) { return int32_t(i % kNodes * 1013 % kNodes); };  // 1013 and 4000 have no common factor
  for (int64_t c = 0; c < kCliques; ++c) {
    for (int64_t i = 0; i < kSize; ++i)
      for (int64_t j = 0; j < kSize; ++j)
        if (i != j) src.push_back(id(c * kSize + i)), dst.push_back(id(c * kSize + j));
    for (const int64_t far : {kSize, kNodes - kSize}) src.push_back(id(c * kSize)), dst.push_back(id(c * kSize + far));
  }
  const Graph graph = square(src, dst, kNodes);
  EXPECT_LT(near(graph, 10), 0.1);
  EXPECT_GT(near(reorder(graph, Ordering::community).graph, 10), 0.95);
}

TEST(Reorder, NodesWithoutEdgesComeLast) {
  for (const Ordering ordering : kOrderings) {
    const Reordered r = reorder(square({1, 3, 6}, {3, 1, 8}, 10), ordering);
    std::vector<int32_t> first(r.old_id.data<int32_t>(), r.old_id.data<int32_t>() + 4);
    std::sort(first.begin(), first.end());
    EXPECT_EQ(first, (std::vector<int32_t>{1, 3, 6, 8}));
    EXPECT_EQ(reorder(square({}, {}, 0), ordering).old_id.numel(), 0);
    EXPECT_EQ(reorder(square({}, {}, 3), ordering).old_id.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2}));
  }
}

TEST(Reorder, SameForEveryThreadCount) {
  const Restore restore;
  const SyntheticGraph edges = synthetic_graph({.nodes = 30000, .edges = 300000, .communities = 200, .symmetric = false});
  std::vector<std::vector<int32_t>> seen[3];
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    const Graph graph = Graph::from_coo(edges.src, edges.dst, 30000, 30000);
    for (size_t i = 0; i < 3; ++i) {
      const Reordered r = reorder(graph, kOrderings[i]);
      seen[i].push_back(r.old_id.to_vector<int32_t>());
      EXPECT_EQ(seen[i].back(), seen[i].front());
    }
  }
}

TEST(Reorder, RowsThereAndBack) {
  const Reordered r = reorder(square({0, 1, 2}, {1, 2, 3}, 4), Tensor::from<int64_t>({2, 0, 3, 1}, Shape{4}));
  EXPECT_EQ(r.permute(Tensor::from<int32_t>({10, 11, 12, 13}, Shape{4})).to_vector<int32_t>(),
            (std::vector<int32_t>{12, 10, 13, 11}));
  EXPECT_EQ(r.restore(Tensor::from<int32_t>({12, 10, 13, 11}, Shape{4})).to_vector<int32_t>(),
            (std::vector<int32_t>{10, 11, 12, 13}));
  EXPECT_EQ(r.rename(Tensor::from<int64_t>({2, 1}, Shape{2})).to_vector<int32_t>(), (std::vector<int32_t>{0, 3}));
  for (const bool back : {false, true})
    verify({.name = back ? "restore" : "permute",
            .inputs = {real({4, 3})},
            .call = [=](const Tensors& in) { return back ? r.restore(in[0]) : r.permute(in[0]); },
            .reference =
                [=](const Arrays& in) {
                  const int32_t* from = (back ? r.new_id : r.old_id).data<int32_t>();
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < 12; ++i) out[i] = in[0][from[i / 3] * 3 + i % 3];
                  return out;
                },
            .k = 0,
            .grad_k = 0});
}

TEST(Reorder, Errors) {
  const Graph graph = square({0, 1}, {1, 0}, 2), wide = Graph::from_coo(i32({0}), i32({0}), 2, 3);
  const Reordered r = reorder(graph, Ordering::degree);
  verify_errors(
      {{[] { reorder(Graph(), Ordering::rcm); }, "InvalidArgument: reorder: the graph is undefined"},
       {[&] { reorder(wide, Ordering::degree); },
        "InvalidArgument: reorder: the graph has 2 sources and 3 destinations but needs one set of nodes"},
       {[&] { reorder(graph, i32({0})); }, "InvalidArgument: reorder: old_id has 1 entries but the graph has 2 nodes"},
       {[&] {
          reorder(graph, i32({0, 2}));
        },
        "InvalidArgument: reorder: old_id[1] is 2 but needs to be in [0, 2)"},
       {[&] {
          reorder(graph, i32({1, 1}));
        },
        "InvalidArgument: reorder: old_id[1] is 1, which was there before; each node needs to come once"},
       {[&] { r.permute(Tensor()); }, "InvalidArgument: permute: rows is undefined"},
       {[&] {
          r.restore(i32({1, 2, 3}));
        },
        "InvalidArgument: restore: rows has shape [3] but the graph has 2 nodes, so it needs [2, ...]"},
       {[&] {
          r.rename(i32({1, -1}));
        },
        "InvalidArgument: rename: ids[1] is -1 but needs to be in [0, 2)"}});
}

}  // namespace
}  // namespace tessera::test
