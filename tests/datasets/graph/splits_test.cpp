#include "tessera/datasets/graph/splits.h"

#include <gtest/gtest.h>

#include "tessera/core/error.h"
#include "tessera/datasets/graph/karate.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/graph/graph_facts.h"

namespace tessera {
namespace {

// 1000 nodes of 4 classes of 100, 200, 300, 400 less every tenth, which has no label.
NodeDataset thousand() {
  NodeDataset set;
  set.name = "thousand";
  set.num_nodes = 1000;
  set.num_classes = 4;
  std::vector<int32_t> labels;
  for (int i = 0; i < 1000; ++i) labels.push_back(i % 10 == 9 ? -1 : i < 100 ? 0 : i < 300 ? 1 : i < 600 ? 2 : 3);
  set.labels = Tensor::from(labels, {1000});
  return set;
}

std::vector<int64_t> classes_of(const NodeDataset& set, const Tensor& part) {
  std::vector<int64_t> counts(4, 0);
  for (const int32_t id : part.to_vector<int32_t>()) {
    EXPECT_GE(set.labels.data<int32_t>()[id], 0);
    ++counts[size_t(set.labels.data<int32_t>()[id])];
  }
  return counts;
}

TEST(Splits, PerClass) {
  NodeDataset set = thousand();
  set.splits = {split_per_class(set, 20, 30, 1), split_per_class(set, 20, 30, 1), split_per_class(set, 20, 30, 2),
                split_per_class(set, 85, 30, 1)};
  EXPECT_EQ(classes_of(set, set.splits[0].train), (std::vector<int64_t>{20, 20, 20, 20}));
  EXPECT_EQ(classes_of(set, set.splits[0].valid), (std::vector<int64_t>{30, 30, 30, 30}));
  EXPECT_EQ(classes_of(set, set.splits[0].test), (std::vector<int64_t>{40, 130, 220, 310}));
  EXPECT_EQ(overlaps(set), 0);
  EXPECT_EQ(set.splits[0].train.to_vector<int32_t>(), set.splits[1].train.to_vector<int32_t>());
  EXPECT_NE(set.splits[0].train.to_vector<int32_t>(), set.splits[2].train.to_vector<int32_t>());
  EXPECT_EQ(classes_of(set, set.splits[3].valid), (std::vector<int64_t>{5, 30, 30, 30}));
}

TEST(Splits, EveryNodeCanBeDrawn) {
  const NodeDataset set = thousand();
  std::vector<int> drawn(1000, 0);
  for (uint64_t seed = 0; seed < 200; ++seed)
    for (const int32_t id : split_per_class(set, 20, 0, seed).train.to_vector<int32_t>()) ++drawn[size_t(id)];
  // Class 0: 20 of 90 a seed, so 44 +- 6 of 200.
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(drawn[size_t(i)], i % 10 == 9 ? 0 : 44.4, i % 10 == 9 ? 0 : 6 * 5.9) << i;
}

TEST(Splits, Shares) {
  NodeDataset set = thousand();
  set.splits = {split_shares(set, 0.6, 0.2, 7)};
  EXPECT_EQ(classes_of(set, set.splits[0].train), (std::vector<int64_t>{54, 108, 162, 216}));
  EXPECT_EQ(classes_of(set, set.splits[0].valid), (std::vector<int64_t>{18, 36, 54, 72}));
  EXPECT_EQ(classes_of(set, set.splits[0].test), (std::vector<int64_t>{18, 36, 54, 72}));
  EXPECT_EQ(overlaps(set), 0);
}

TEST(Splits, Planetoid) {
  NodeDataset set = thousand();
  set.splits = {split_planetoid(set, 20, 100, 500, 7)};
  EXPECT_EQ(classes_of(set, set.splits[0].train), (std::vector<int64_t>{20, 20, 20, 20}));
  EXPECT_EQ(split_sizes(set), (std::vector<int64_t>{80, 100, 500}));
  EXPECT_EQ(overlaps(set), 0);
}

TEST(Splits, Errors) {
  const NodeDataset set = thousand();
  EXPECT_EQ(error_of<InvalidArgument>([&] { split_planetoid(set, 91, 0, 0, 1); }),
            "split_planetoid: class 0 has 90 labelled nodes but 91 are to train");
  EXPECT_EQ(error_of<InvalidArgument>([&] { split_planetoid(set, 20, 500, 500, 1); }),
            "split_planetoid: 820 nodes are left but 500 are to validate and 500 to test");
  EXPECT_EQ(error_of<InvalidArgument>([&] { split_planetoid(set, -1, 500, 500, 1); }),
            "split_planetoid: train is -1, valid 500 and test 500, expected 0 or more");
  EXPECT_EQ(error_of<InvalidArgument>([&] { split_per_class(set, -1, 0, 1); }),
            "split_per_class: train is -1 and valid 0, expected 0 or more");
  EXPECT_EQ(error_of<InvalidArgument>([&] { split_shares(set, 0.75, 0.5, 1); }),
            "split_shares: train is 0.75 and valid 0.5, expected shares of at most 1 together");
  NodeDataset bare;
  bare.name = "bare";
  EXPECT_EQ(error_of<InvalidArgument>([&] { split_per_class(bare, 1, 1, 1); }), "split: the data set 'bare' has no labels");
}

}  // namespace
}  // namespace tessera
