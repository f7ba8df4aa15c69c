#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/layers/models/appnp.h"
#include "tessera/layers/models/sgc.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera::test {
namespace {

TEST(SgcModel, EqualsPyG) {
  Generator random(1);
  verify_gold("sgc_model", Sgc({.in = 6, .out = 3}, random), [](const Sgc& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused);
  });
}

TEST(AppnpModel, EqualsPyG) {
  Generator random(1);
  const Appnp model({.in = 6, .hidden = 5, .out = 3, .dropout = 0, .propagation = {.hops = 4, .alpha = 0.2}}, random);
  verify_gold("appnp_model", model, [](const Appnp& m, const GoldGraph& g) {
    Generator unused(1);
    return m(g.x, g.graph, unused);
  });
}

/// One-hot features, as a sparse matrix and as the identity that it is.
TEST(SgcAndAppnp, SparseFeatures) {
  const NodeDataset data = load_node_dataset("karate", "");
  const Graph graph = Graph::from_coo(data.src, data.dst, data.num_nodes, data.num_nodes);
  const int64_t n = data.num_nodes;
  std::vector<int64_t> rowptr, col;
  for (int64_t i = 0; i <= n; ++i) rowptr.push_back(i);
  for (int64_t i = 0; i < n; ++i) col.push_back(n - 1 - i);
  const SparseMatrix sparse{Graph::from_csr(Tensor::from(rowptr, {n + 1}), Tensor::from(col, {n}), n), ones({n})};
  Tensor dense = zeros({n, n});
  for (int64_t i = 0; i < n; ++i) dense.mutable_data<float>()[i * n + n - 1 - i] = 1;
  Generator random(3);
  const auto expect_equal = [&](const auto& model) {
    const Tensor a = model(sparse, graph, random).detach(), b = model(dense, graph, random).detach();
    ASSERT_EQ(a.shape(), (Shape{n, 4}));
    for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-6);
  };
  expect_equal(Sgc({.in = n, .out = 4, .hops = 3}, random));
  Appnp model({.in = n, .out = 4}, random);
  eval(model);
  expect_equal(model);
}

TEST(AppnpModel, DropoutIsOfTraining) {
  Generator random(3);
  Appnp model({.in = 5, .hidden = 8, .out = 2}, random);
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 2}, {2, 2}), 3);
  const Tensor x = uniform({3, 5}, -1, 1, random);
  const uint64_t before = random.streams_used();
  EXPECT_FALSE(same_bits(model(x, graph, random).detach(), model(x, graph, random).detach()));
  EXPECT_EQ(random.streams_used(), before + 4);
  eval(model);
  EXPECT_TRUE(same_bits(model(x, graph, random).detach(), model(x, graph, random).detach()));
  EXPECT_EQ(random.streams_used(), before + 4);
}

TEST(SgcAndAppnp, Errors) {
  Generator random(2);
  verify_errors({
      {[&] { Sgc({.in = 4}, random); }, "InvalidArgument: sgc: sizes in 4 and out 0 need to be 1 or more"},
      {[&] { Sgc({.in = 4, .out = 2, .hops = -1}, random); }, "InvalidArgument: sgc: -1 hops asked but needs 0 or more"},
      {[&] { Appnp({.in = 4}, random); }, "InvalidArgument: appnp: sizes in 4, hidden 64 and out 0 need to be 1 or more"},
      {[&] { Appnp({.in = 4, .out = 2, .dropout = 2}, random); },
       "InvalidArgument: appnp: dropout is 2 but needs to be in [0, 1]"},
      {[&] { Appnp({.in = 4, .out = 2, .propagation = {.hops = -1}}, random); },
       "InvalidArgument: appnp: -1 hops asked but needs 0 or more"},
      {[&] { Appnp({.in = 4, .out = 2, .propagation = {.alpha = 1.5}}, random); },
       "InvalidArgument: appnp: alpha is 1.5 but needs to be in [0, 1]"},
  });
}

}  // namespace
}  // namespace tessera::test
