#include "tessera/datasets/graph/graph_npz.h"

#include <gtest/gtest.h>

#include "tessera/core/error.h"
#include "tessera/core/io/npy.h"
#include "tessera/tests/core/io/make_zip.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/graph/graph_facts.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

struct Row {
  const char* file;
  int64_t nodes, stored, edges, features, classes, lcc_nodes, lcc_edges;
};

constexpr Row kRows[] = {
    {"npz/gnn-benchmark/cora.npz", 2708, 5429, 5278, 1433, 7, 2485, 5069},
    {"npz/gnn-benchmark/citeseer.npz", 3312, 4715, 4536, 3703, 6, 2110, 3668},
    {"npz/ppnp/cora_ml.npz", 2995, 8416, 8158, 2879, 7, 2810, 7981},
    {"npz/nettack/polblogs.npz", 1490, 19025, 16715, 0, 2, 1222, 16714},
    {"npz/shchur/amazon_electronics_photo.npz", 7650, 143663, 119081, 745, 8, 7487, 119043},
    {"npz/shchur/ms_academic_cs.npz", 18333, 163788, 81894, 6805, 15, 18333, 81894},
};

TEST(GraphNpz, CsrForms) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  for (const Row& row : kRows) {
    NodeDataset set = load_graph_npz(data / row.file);
    EXPECT_EQ(set.num_nodes, row.nodes) << row.file;
    EXPECT_EQ(set.num_features, row.features) << row.file;
    EXPECT_EQ(set.num_classes, row.classes) << row.file;
    EXPECT_EQ(set.sparse_features(), row.features > 0) << row.file;
    EXPECT_EQ(set.num_directed_edges(), 2 * row.edges) << row.file;
    EXPECT_TRUE(set.splits.empty());
    const NpzFile npz(data / row.file);
    EXPECT_EQ(npz.read(npz.contains("adj_data") ? "adj_data" : "adj_matrix.data").numel(), row.stored) << row.file;
    const GraphFacts before = graph_facts(set);
    keep_largest_component(set);
    EXPECT_EQ(set.num_nodes, row.lcc_nodes) << row.file;
    EXPECT_EQ(set.num_nodes, before.largest_component) << row.file;
    const GraphFacts after = graph_facts(set);
    EXPECT_EQ(after.undirected_edges, row.lcc_edges) << row.file;
    EXPECT_EQ(after.components, 1) << row.file;
    EXPECT_EQ(set.labels.numel(), row.lcc_nodes);
    EXPECT_EQ(set.sparse_features() ? set.feature_rowptr.numel() : row.lcc_nodes + 1, row.lcc_nodes + 1);
  }
  EXPECT_EQ(load_graph_npz(data / kRows[0].file).feature_values.numel(), 49216);
  EXPECT_EQ(load_graph_npz(data / kRows[0].file).name, "cora");
}

struct Hetero {
  const char* name;
  int64_t nodes, edges, features, classes;
  double homophily;
  std::vector<int64_t> split;
};

TEST(GraphNpz, Heterophilous) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const std::vector<Hetero> rows = {
      {"chameleon", 2277, 31371, 2325, 5, 0.23, {1092, 729, 456}},
      {"chameleon_filtered", 890, 8854, 2325, 5, 0.24, {409, 287, 194}},
      {"actor", 7600, 26659, 932, 5, 0.22, {3648, 2432, 1520}},
      {"cornell", 183, 277, 1703, 5, 0.12, {87, 59, 37}},
      {"texas", 183, 279, 1703, 5, 0.06, {87, 59, 37}},
      {"wisconsin", 251, 450, 1703, 5, 0.18, {120, 80, 51}},
      {"minesweeper", 10000, 39402, 7, 2, 0.68, {5000, 2500, 2500}},
  };
  for (const Hetero& row : rows) {
    const NodeDataset set = load_graph_npz(data / "heterophilous" / (std::string(row.name) + ".npz"));
    EXPECT_EQ(set.name, row.name);
    EXPECT_EQ(set.num_nodes, row.nodes) << row.name;
    EXPECT_EQ(set.num_directed_edges(), 2 * row.edges) << row.name;
    EXPECT_EQ(set.num_features, row.features) << row.name;
    EXPECT_EQ(set.num_classes, row.classes) << row.name;
    EXPECT_EQ(set.features.shape(), (Shape{row.nodes, row.features}));
    ASSERT_EQ(set.splits.size(), 10u) << row.name;
    EXPECT_EQ(split_sizes(set), row.split) << row.name;
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(overlaps(set, i), 0);
    int64_t same = 0;
    for (int64_t e = 0; e < set.src.numel(); ++e)
      same +=
          set.labels.data<int32_t>()[set.src.data<int32_t>()[e]] == set.labels.data<int32_t>()[set.dst.data<int32_t>()[e]];
    EXPECT_NEAR(double(same) / double(set.src.numel()), row.homophily, 0.005) << row.name;
  }
  const NodeDataset mines = load_graph_npz(data / "heterophilous/minesweeper.npz");
  EXPECT_EQ(class_counts(mines), (std::vector<int64_t>{8000, 2000}));
  const Tensor edges = NpzFile(data / "heterophilous/chameleon_directed.npz").read("edges");
  EXPECT_EQ(edges.dim(0), 36101);
  int64_t loops = 0;
  for (int64_t e = 0; e < edges.dim(0); ++e) loops += edges.data<int64_t>()[2 * e] == edges.data<int64_t>()[2 * e + 1];
  EXPECT_EQ(loops, 50);
  EXPECT_EQ(load_graph_npz(data / "heterophilous/chameleon_directed.npz").num_directed_edges(), 2 * 31371);
}

// A small archive of arrays, as text headers and bytes.
class SmallNpz : public testing::Test {
 protected:
  template <class T>
  static std::string array(const char* descr, const std::string& shape, const std::vector<T>& values) {
    std::string header =
        std::string("{'descr': '").append(descr).append("', 'fortran_order': False, 'shape': ").append(shape) + ", }\n";
    std::string out = std::string("\x93NUMPY\1\0", 8) + little_endian(uint16_t(header.size())) + header;
    for (const T value : values) out += little_endian(value);
    return out;
  }
  void SetUp() override {
    members_ = {{"adj_data", array<float>("<f4", "(3,)", {1, 1, 1})},
                {"adj_indices", array<int32_t>("<i4", "(3,)", {1, 0, 0})},
                {"adj_indptr", array<int32_t>("<i4", "(4,)", {0, 1, 2, 3})},
                {"adj_shape", array<int64_t>("<i8", "(2,)", {3, 3})},
                {"labels", array<int8_t>("|i1", "(3,)", {0, 1, -1})}};
  }
  void set(const std::string& name, const std::string& content) { members_[name] = content; }
  NodeDataset load() {
    std::vector<std::pair<std::string, std::string>> list;
    for (const auto& [name, content] : members_) list.emplace_back(name + ".npy", content);
    put(path_, make_zip(list));
    return load_graph_npz(path_);
  }
  std::string error() {
    return error_of<IoError>([&] { load(); }).substr(path_.size());
  }
  std::map<std::string, std::string> members_;
  TemporaryFolder folder_;
  std::string path_ = folder_ / "small.npz";
};

TEST_F(SmallNpz, WithoutFeatures) {
  NodeDataset set = load();
  EXPECT_EQ(set.src.to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1, 2}));
  EXPECT_EQ(set.dst.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 0, 0}));
  EXPECT_EQ(set.labels.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, -1}));
  EXPECT_EQ(set.num_features, 0);
  EXPECT_FALSE(set.features.defined());
  EXPECT_FALSE(set.sparse_features());
  set_identity_features(set);
  EXPECT_EQ(set.num_features, 3);
}

TEST_F(SmallNpz, DenseFeatures) {
  set("attr_matrix", array<double>("<f8", "(3, 2)", {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(load().features.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  set("attr_matrix", array<double>("<f8", "(2, 3)", {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(error(), ": attr_matrix has the shape [2, 3], expected [3, features]");
}

TEST_F(SmallNpz, RepeatedAndUnsortedFeatureEntries) {
  set("attr_data", array<float>("<f4", "(4,)", {1, 2, 4, 8}));
  set("attr_indices", array<int32_t>("<i4", "(4,)", {1, 0, 1, 0}));
  set("attr_indptr", array<int32_t>("<i4", "(4,)", {0, 3, 3, 4}));
  set("attr_shape", array<int64_t>("<i8", "(2,)", {3, 2}));
  const NodeDataset set = load();
  EXPECT_EQ(set.feature_rowptr.to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(set.feature_col.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(set.feature_values.to_vector<float>(), (std::vector<float>{2, 5, 8}));
}

TEST_F(SmallNpz, WhatDoesNotFit) {
  set("adj_indices", array<int32_t>("<i4", "(3,)", {1, 0, 3}));
  EXPECT_EQ(error(), ": the adjacency matrix has the column 3 at position 2, expected 0 to 2");
  set("adj_indices", array<float>("<f4", "(3,)", {1, 0, 2}));
  EXPECT_EQ(error(), ": the adjacency matrix has elements of f32, expected integers");
  SetUp();
  set("adj_shape", array<int64_t>("<i8", "(2,)", {3, 4}));
  EXPECT_EQ(error(), ": adj_shape is [3, 4], expected a square matrix of at most 2^31 - 1");
  set("adj_shape", array<int64_t>("<i8", "(2,)", {int64_t(1) << 40, int64_t(1) << 40}));
  EXPECT_EQ(error(), ": adj_shape is [1099511627776, 1099511627776], expected a square matrix of at most 2^31 - 1");
  set("adj_shape", array<int64_t>("<i8", "(2,)", {2000000000, 2000000000}));
  EXPECT_EQ(error(), ": the adjacency matrix has 4 row pointers, expected 2000000001 for 2000000000 rows");
  set("adj_shape", array<int64_t>("<i8", "(3,)", {3, 3, 3}));
  EXPECT_EQ(error(), ": adj_shape is not two sizes, 0 or more");
  SetUp();
  set("labels", array<int8_t>("|i1", "(2,)", {0, 1}));
  EXPECT_EQ(error(), ": labels has 2 labels, expected 3, one per node");
  set("labels", array<int8_t>("|i1", "(3,)", {0, 1, -2}));
  EXPECT_EQ(error(), ": labels has the label -2 at node 2, expected -1 (none) or 0 to 1000000");
  members_.erase("labels");
  EXPECT_EQ(error(), ": has no array 'labels', only adj_data, adj_indices, adj_indptr, adj_shape");
  members_ = {{"x", array<float>("<f4", "(1,)", {1})}};
  EXPECT_EQ(error(), ": holds no graph, expected the arrays adj_data, adj_matrix.data or node_features");
}

TEST_F(SmallNpz, HeterophilousThatDoesNotFit) {
  const auto reset = [&] {
    members_ = {{"node_features", array<float>("<f4", "(2, 1)", {1, 2})},
                {"node_labels", array<int64_t>("<i8", "(2,)", {0, 1})},
                {"edges", array<int64_t>("<i8", "(1, 2)", {0, 1})}};
    for (const char* mask : {"train_masks", "val_masks", "test_masks"}) set(mask, array<uint8_t>("|b1", "(1, 2)", {1, 0}));
  };
  reset();
  EXPECT_EQ(load().splits[0].train.to_vector<int32_t>(), (std::vector<int32_t>{0}));
  set("edges", array<int64_t>("<i8", "(1, 2)", {0, 2}));
  EXPECT_EQ(error(), ": edge 0 has the node 2, expected 0 to 1");
  set("edges", array<int64_t>("<i8", "(2,)", {0, 1}));
  EXPECT_EQ(error(), ": edges has the shape [2], expected [edges, 2]");
  reset();
  set("val_masks", array<uint8_t>("|b1", "(1, 3)", {1, 0, 0}));
  EXPECT_EQ(error(), ": the masks have the shapes [1, 2], [1, 3] and [1, 2], expected booleans of [splits, 2]");
  reset();
  set("node_features", array<float>("<f4", "(2,)", {1, 2}));
  EXPECT_EQ(error(), ": node_features has the shape [2], expected [nodes, features]");
}

TEST(NodeDatasetParts, LargestComponentKeepsEverythingTogether) {
  NodeDataset set;
  set.num_nodes = 6;
  set.num_features = 1;
  set.num_classes = 2;
  // 0-1, 2-4-5; 3 alone.
  set.src = Tensor::from<int32_t>({0, 1, 2, 4, 4, 5}, {6});
  set.dst = Tensor::from<int32_t>({1, 0, 4, 2, 5, 4}, {6});
  set.features = Tensor::from<float>({0, 10, 20, 30, 40, 50}, {6, 1});
  set.labels = Tensor::from<int32_t>({0, 0, 1, 0, 1, -1}, {6});
  set.splits.push_back(
      {Tensor::from<int32_t>({0, 2}, {2}), Tensor::from<int32_t>({5, 4}, {2}), Tensor::from<int32_t>({3}, {1})});
  keep_largest_component(set);
  EXPECT_EQ(set.num_nodes, 3);
  EXPECT_EQ(set.src.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 1, 2}));
  EXPECT_EQ(set.dst.to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 2, 1}));
  EXPECT_EQ(set.features.to_vector<float>(), (std::vector<float>{20, 40, 50}));
  EXPECT_EQ(set.labels.to_vector<int32_t>(), (std::vector<int32_t>{1, 1, -1}));
  EXPECT_EQ(set.splits[0].train.to_vector<int32_t>(), (std::vector<int32_t>{0}));
  EXPECT_EQ(set.splits[0].valid.to_vector<int32_t>(), (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(set.splits[0].test.numel(), 0);
}

}  // namespace
}  // namespace tessera
