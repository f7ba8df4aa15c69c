#include "tessera/datasets/graph_set/graph_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tessera/core/error.h"
#include "tessera/datasets/graph_set/assemble.h"
#include "tessera/datasets/graph_set/folds.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

/// A path of three nodes, a single node, a star of `leaves` leaves, one edge in one direction.
GraphSet some_graphs(int32_t leaves = 3) {
  GraphSet set;
  set.name = "some";
  set.node_offsets = offsets_of({3, 1, leaves + 1, 2}, "test");
  Ints from{0, 1, 1, 2}, to{1, 0, 2, 1};
  for (int32_t leaf = 1; leaf <= leaves; ++leaf) {
    from.insert(from.end(), {4, 4 + leaf});
    to.insert(to.end(), {4 + leaf, 4});
  }
  from.push_back(5 + leaves);
  to.push_back(6 + leaves);
  set_edges(set, from, to, {}, Repeats::merged);
  set_classes(set, {4, 9, 4, 4});
  return set;
}

TEST(GraphSet, DegreesAsFeatures) {
  GraphSet set = some_graphs();
  choose_features(set, GraphFeatures::usual);
  EXPECT_EQ(set.num_features, 4) << "degrees 0 to 3";
  EXPECT_EQ(set.sample(Ints{1, 0}).x.to_vector<float>(), (Floats{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(set.sample(Ints{3}).x.to_vector<float>(), (Floats{0, 1, 0, 0, 1, 0, 0, 0})) << "of the edges that leave";
  GraphSet hub = some_graphs(1000);
  choose_features(hub, GraphFeatures::degree);
  EXPECT_EQ(hub.num_features, 1);
  double sum = 0, squares = 0;
  for (const float x : hub.x.span<float>()) {
    sum += x;
    squares += double(x) * x;
  }
  EXPECT_NEAR(sum, 0, 1e-3);
  EXPECT_NEAR(squares, double(hub.num_nodes() - 1), 1e-2);
}

TEST(GraphSet, ASampleIsTheGraphsInTheOrderAskedFor) {
  GraphSet set = some_graphs();
  choose_features(set, GraphFeatures::degree);
  const GraphSample sample = set.sample(Ints{3, 2, 3});
  EXPECT_EQ(sample.batch.node_offsets().to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 6, 8}));
  EXPECT_EQ(sample.batch.graph.rowptr().to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 1, 4, 5, 6, 7, 7, 8}));
  EXPECT_EQ(sample.batch.graph.col().to_vector<int32_t>(), (Ints{0, 3, 4, 5, 2, 2, 2, 6}));
  EXPECT_EQ(sample.batch.at(1).col().to_vector<int32_t>(), (Ints{1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(sample.y.to_vector<int32_t>(), (Ints{0, 0, 0}));
  EXPECT_EQ(set.sample(Ints{}).batch.num_graphs(), 0);
  EXPECT_EQ(describe(set), "some: 4 graphs, 10 nodes, 11 directed edges, 4 features, 2 classes");
}

TEST(GraphSet, WhatIsRefused) {
  GraphSet set = some_graphs();
  EXPECT_EQ(error_of<InvalidArgument>([&] { set.sample(Ints{0}); }), "graph_set: some has no features yet: choose_features");
  choose_features(set, GraphFeatures::degree);
  EXPECT_EQ(error_of<InvalidArgument>([&] { set.sample(Ints{0, 4}); }), "graph_set: id 4 at position 1 is outside [0, 4)");
  EXPECT_EQ(error_of<InvalidArgument>([&] { choose_features(set, GraphFeatures::labels); }),
            "choose_features: some has no node labels");
  EXPECT_EQ(error_of<InvalidArgument>([&] { choose_features(set, GraphFeatures::attributes); }),
            "choose_features: some has no node attributes");
  EXPECT_EQ(error_of<InvalidArgument>([&] { choose_features(set, GraphFeatures::all); }),
            "choose_features: some has neither node labels nor node attributes");
}

TEST(Folds, EveryFoldHasItsShareOfEveryClass) {
  Ints labels;
  for (int i = 0; i < 101; ++i) labels.push_back(i % 5 == 0 ? 1 : 0);
  const Tensor y = Tensor::from(labels, {101});
  const Ints folds = stratified_folds(y, 4, 7);
  std::vector<std::vector<int>> counts(4, std::vector<int>(2));
  for (size_t i = 0; i < 101; ++i) ++counts[size_t(folds[i])][size_t(labels[i])];
  for (const auto& fold : counts) {
    EXPECT_GE(fold[0], 20);
    EXPECT_LE(fold[0], 20 + 1);
    EXPECT_GE(fold[1], 5);
    EXPECT_LE(fold[1], 6);
  }
  EXPECT_NE(folds, stratified_folds(y, 4, 8));
  const GraphSplit split = split_of_fold(folds, 4, 0);
  EXPECT_EQ(split.train.numel() + split.valid.numel() + split.test.numel(), 101);
  for (const int32_t g : split.valid.span<int32_t>()) EXPECT_EQ(folds[size_t(g)], 3);
  EXPECT_EQ(error_of<InvalidArgument>([&] { stratified_folds(y, 1, 0); }),
            "stratified_folds: 1 folds of 101 graphs, but needs 2 or more of at least as many");
  EXPECT_EQ(error_of<InvalidArgument>([&] {
              stratified_folds(Tensor::from(Ints{0, 1, 2}, {3}), 2, 0);
            }),
            "stratified_folds: 2 folds, but no class has more than 1 graphs");
}

TEST(Folds, AFileOfFolds) {
  const TemporaryFolder folder;
  put(folder / "f", "0\n2\n1\n");
  EXPECT_EQ(load_folds(folder / "f", 3, 3), (Ints{0, 2, 1}));
  EXPECT_EQ(error_of<IoError>([&] { load_folds(folder / "f", 4, 3); }),
            folder / "f" + ": has 3 lines, but there are 4 graphs");
  EXPECT_EQ(error_of<IoError>([&] { load_folds(folder / "f", 3, 2); }),
            folder / "f" + ": line 2 has the fold 2, expected 0 to 1");
}

TEST(Folds, RandomSplitsAndHeldOutGraphs) {
  const GraphSplit split = split_at_random(10, 0.8, 0.1, 3);
  EXPECT_EQ(split.train.numel(), 8);
  EXPECT_EQ(split.valid.numel(), 1);
  EXPECT_EQ(split.test.numel(), 1);
  std::set<int32_t> seen;
  for (const Tensor* part : {&split.train, &split.valid, &split.test})
    for (const int32_t g : part->span<int32_t>()) seen.insert(g);
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_NE(split_at_random(100, 0.5, 0, 1).train.to_vector<int32_t>(),
            split_at_random(100, 0.5, 0, 2).train.to_vector<int32_t>());
  EXPECT_EQ(error_of<InvalidArgument>([] { split_at_random(10, 0.8, 0.3, 0); }),
            "split_at_random: shares 0.8 and 0.3 need to be 0 or more, and 1 or less together");

  Ints labels(40, 0);
  for (size_t i = 0; i < 10; ++i) labels[i] = 1;
  const Tensor y = Tensor::from(labels, {40});
  GraphSplit all = split_at_random(40, 1, 0, 0);
  hold_out(all, y, 0.1, 5);
  EXPECT_EQ(all.train.numel(), 36);
  ASSERT_EQ(all.valid.numel(), 4);
  EXPECT_EQ(labels[size_t(all.valid.data<int32_t>()[0])], 1);
  EXPECT_EQ(labels[size_t(all.valid.data<int32_t>()[1])], 0);
  EXPECT_EQ(error_of<InvalidArgument>([&] { hold_out(all, y, 0.1, 5); }),
            "hold_out: the split has 4 validation graphs already");
}

}  // namespace
}  // namespace tessera
