#include "tessera/datasets/graph/karate.h"

#include <gtest/gtest.h>

#include "tessera/tests/datasets/graph/graph_facts.h"

namespace tessera {
namespace {

TEST(Karate, Facts) {
  const NodeDataset karate = karate_club();
  EXPECT_EQ(karate.num_nodes, 34);
  EXPECT_EQ(karate.num_features, 34);
  EXPECT_EQ(karate.num_classes, 4);
  const GraphFacts facts = graph_facts(karate);
  EXPECT_EQ(facts.undirected_edges, 78);
  EXPECT_EQ(facts.triangles, 45);
  EXPECT_EQ(facts.components, 1);
  EXPECT_EQ(facts.max_degree, 17);
  std::vector<size_t> degrees;
  for (const auto& list : neighbours(karate)) degrees.push_back(list.size());
  EXPECT_EQ(degrees, (std::vector<size_t>{16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2,  2,
                                          2,  2, 3,  2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17}));
  EXPECT_EQ(class_counts(karate), (std::vector<int64_t>{13, 12, 4, 5}));
  EXPECT_EQ(karate.splits[0].train.to_vector<int32_t>(), (std::vector<int32_t>{0, 4, 8, 24}));
  EXPECT_EQ(split_sizes(karate), (std::vector<int64_t>{4, 0, 30}));
  EXPECT_EQ(overlaps(karate), 0);
  EXPECT_EQ(karate.feature_values.numel(), 34);
  for (int32_t i = 0; i < 34; ++i) EXPECT_EQ(karate.feature_col.data<int32_t>()[i], i);
  EXPECT_EQ(karate.sha256, karate_club().sha256);
}

}  // namespace
}  // namespace tessera
