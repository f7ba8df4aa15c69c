#include "tessera/datasets/graph/node_dataset.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

TEST(SparsifyFeatures, KeepsWhatIsThere) {
  NodeDataset d{.num_nodes = 3, .num_features = 4};
  d.features = Tensor::from<float>({0, 2, 0, -0.0f, 0, 0, 0, 0, NAN, 0, 0, 5}, {3, 4});
  EXPECT_FALSE(sparsify_features(d, 0.24));
  EXPECT_FALSE(d.sparse_features());
  EXPECT_TRUE(sparsify_features(d, 0.25));
  EXPECT_FALSE(d.features.defined());
  EXPECT_EQ(d.feature_rowptr.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1, 3}));
  EXPECT_EQ(d.feature_col.to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 3}));
  EXPECT_EQ(d.feature_values.to_vector<float>()[0], 2);
  EXPECT_TRUE(std::isnan(d.feature_values.to_vector<float>()[1]));
  EXPECT_EQ(d.feature_values.to_vector<float>()[2], 5);
  EXPECT_FALSE(sparsify_features(d, 1)) << "they are sparse already";
  EXPECT_EQ(d.num_features, 4);
}

TEST(SparsifyFeatures, Nothing) {
  NodeDataset none{.num_nodes = 2};
  EXPECT_FALSE(sparsify_features(none, 1));
  NodeDataset empty{.num_nodes = 0, .num_features = 4};
  empty.features = Tensor::empty({0, 4});
  EXPECT_TRUE(sparsify_features(empty, 0.1));
  EXPECT_EQ(empty.feature_rowptr.to_vector<int64_t>(), std::vector<int64_t>{0});
}

}  // namespace
}  // namespace tessera
