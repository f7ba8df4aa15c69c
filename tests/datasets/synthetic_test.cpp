#include "tessera/datasets/synthetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

std::vector<int64_t> degrees(const SyntheticGraph& graph, int64_t nodes) {
  std::vector<int64_t> out(static_cast<size_t>(nodes));
  for (int32_t d : graph.dst.span<int32_t>()) ++out[size_t(d)];
  return out;
}

TEST(Synthetic, SameGraphForEveryThreadCount) {
  const Restore restore;
  SyntheticOptions options;
  options.nodes = 5000;
  options.edges = 100001;
  for (const auto kind : {SyntheticOptions::Kind::planted, SyntheticOptions::Kind::rmat}) {
    options.kind = kind;
    set_threads(1);
    const SyntheticGraph first = synthetic_graph(options);
    for (int count : {2, 3}) {
      set_threads(count);
      const SyntheticGraph again = synthetic_graph(options);
      EXPECT_EQ(again.checksum, first.checksum);
      EXPECT_EQ(again.src.to_vector<int32_t>(), first.src.to_vector<int32_t>());
      EXPECT_EQ(again.dst.to_vector<int32_t>(), first.dst.to_vector<int32_t>());
      EXPECT_EQ(again.community.to_vector<int32_t>(), first.community.to_vector<int32_t>());
    }
    options.seed = 2;
    EXPECT_NE(synthetic_graph(options).checksum, first.checksum);
    options.seed = 1;
  }
}

/// What every published figure stands on: these options mean this graph, for good.
TEST(Synthetic, ChecksumsAreFixed) {
  SyntheticOptions options;
  options.nodes = 1000;
  options.edges = 20000;
  EXPECT_EQ(synthetic_graph(options).checksum, 1354916252663819992u);
  options.kind = SyntheticOptions::Kind::rmat;
  EXPECT_EQ(synthetic_graph(options).checksum, 8003643851575658250u);
}

TEST(Synthetic, DegreesFollowThePowerLawUpToTheLargest) {
  SyntheticOptions options;
  options.nodes = 50000;
  options.edges = 2000000;
  options.max_degree = 3000;
  const SyntheticGraph graph = synthetic_graph(options);
  std::vector<int64_t> degree = degrees(graph, options.nodes);
  std::sort(degree.begin(), degree.end(), std::greater<>());
  EXPECT_NEAR(double(degree[0]), 3000, 300);
  // degree ~ (rank + i0)^-0.909 with one curve per community: far from the head, ten times the rank is a degree of about
  // an eighth.
  const double ratio = double(degree[4000]) / double(degree[40000]);
  EXPECT_NEAR(std::log(ratio) / std::log(10.0), 0.909, 0.1);
}

TEST(Synthetic, CommunitiesHoldTheirShareOfEdges) {
  SyntheticOptions options;
  options.nodes = 10000;
  options.edges = 400000;
  options.communities = 20;
  options.inside = 0.7;
  for (const bool shuffle : {false, true}) {
    options.shuffle = shuffle;
    const SyntheticGraph graph = synthetic_graph(options);
    const int32_t* label = graph.community.data<int32_t>();
    const int32_t* src = graph.src.data<int32_t>();
    const int32_t* dst = graph.dst.data<int32_t>();
    int64_t inside = 0;
    for (int64_t e = 0; e < options.edges; ++e) inside += label[src[e]] == label[dst[e]];
    // 0.7 by choice, and one in twenty of the others by chance.
    EXPECT_NEAR(double(inside) / double(options.edges), 0.7 + 0.3 / 20, 0.01);
    std::vector<int64_t> size(20);
    for (int64_t i = 0; i < options.nodes; ++i) ++size[size_t(label[i])];
    EXPECT_EQ(size, std::vector<int64_t>(20, 500));
    EXPECT_EQ(std::is_sorted(label, label + options.nodes), !shuffle);
  }
}

TEST(Synthetic, SymmetricListsHoldEveryEdgeTwice) {
  SyntheticOptions options;
  options.nodes = 100;
  options.edges = 1000;
  options.communities = 4;
  const SyntheticGraph graph = synthetic_graph(options);
  for (int64_t e = 0; e < options.edges; e += 2) {
    EXPECT_EQ(graph.src.data<int32_t>()[e], graph.dst.data<int32_t>()[e + 1]);
    EXPECT_EQ(graph.dst.data<int32_t>()[e], graph.src.data<int32_t>()[e + 1]);
  }
}

TEST(Synthetic, RmatFavoursTheFirstQuadrant) {
  SyntheticOptions options;
  options.kind = SyntheticOptions::Kind::rmat;
  options.nodes = 1000;  // no power of two: ids are folded
  options.edges = 100000;
  options.shuffle = false;
  options.symmetric = false;
  const SyntheticGraph graph = synthetic_graph(options);
  int64_t quadrant[4] = {};
  for (int64_t e = 0; e < options.edges; ++e) {
    const int32_t s = graph.src.data<int32_t>()[e], d = graph.dst.data<int32_t>()[e];
    ASSERT_TRUE(0 <= s && s < 1000 && 0 <= d && d < 1000);
    ++quadrant[2 * (s >= 500) + (d >= 500)];
  }
  const double expected[4] = {.57, .19, .19, .05};
  for (int q = 0; q < 4; ++q) EXPECT_NEAR(double(quadrant[q]) / 100000, expected[q], 0.01) << q;
}

TEST(Synthetic, Errors) {
  const auto text = [](const SyntheticOptions& options) { return error_of([&] { synthetic_graph(options); }); };
  SyntheticOptions options;
  EXPECT_EQ(text(options), "InvalidArgument: synthetic_graph: nodes is 0 but needs to be in [1, 2147483647]");
  options.nodes = 10;
  EXPECT_EQ(text(options), "InvalidArgument: synthetic_graph: communities is 50 but needs to be in [1, 10]");
  options.communities = 2;
  options.edges = -1;
  EXPECT_EQ(text(options), "InvalidArgument: synthetic_graph: edges is -1 but needs to be at least 0");
  options.edges = 0;
  EXPECT_EQ(text(options), "no error");
  options.exponent = 1;
  EXPECT_EQ(text(options), "InvalidArgument: synthetic_graph: exponent is 1 but needs to be above 1");
  options.exponent = 2;
  options.inside = 1.5;
  EXPECT_EQ(text(options), "InvalidArgument: synthetic_graph: inside is 1.5 but needs to be in [0, 1]");
}

}  // namespace
}  // namespace tessera::test
