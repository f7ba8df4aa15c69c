#include "tessera/datasets/graph/geom_gcn.h"

#include <gtest/gtest.h>

#include "tessera/core/error.h"
#include "tessera/core/io/csv.h"
#include "tessera/core/io/file.h"
#include "tessera/datasets/graph/graph_npz.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/graph/graph_facts.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

struct Row {
  const char* name;
  int64_t nodes, lines, edges, loops, features;
  std::vector<int64_t> classes, split;
};

TEST(GeomGcn, PublishedSets) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const std::vector<Row> rows = {
      {"cornell", 183, 298, 277, 3, 1703, {38, 16, 30, 82, 17}, {87, 59, 37}},
      {"texas", 183, 325, 279, 16, 1703, {33, 1, 18, 101, 30}, {87, 59, 37}},
      {"wisconsin", 251, 515, 450, 16, 1703, {10, 70, 118, 32, 21}, {120, 80, 51}},
      {"film", 7600, 33391, 26659, 93, 932, {853, 1337, 1630, 1815, 1965}, {3648, 2432, 1520}},
  };
  for (const Row& row : rows) {
    const std::string folder = data / "geom-gcn" / row.name;
    const NodeDataset set = load_geom_gcn(folder, row.name);
    EXPECT_EQ(set.num_nodes, row.nodes) << row.name;
    EXPECT_EQ(set.num_directed_edges(), 2 * row.edges) << row.name;
    EXPECT_EQ(set.num_features, row.features) << row.name;
    EXPECT_EQ(class_counts(set), row.classes) << row.name;
    ASSERT_EQ(set.splits.size(), 10u) << row.name;
    EXPECT_EQ(split_sizes(set), row.split) << row.name;
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(overlaps(set, i), 0);
    int64_t lines = -1;
    std::set<int64_t> loops;
    read_csv(folder + "/out1_graph_edges.txt", {}, [&](const CsvRow& line) {
      ++lines;
      const std::optional<int64_t> id = to_integer(line.fields[0]);  // the header is "node_id" twice
      if (id && line.fields[0] == line.fields[1]) loops.insert(*id);
    });
    EXPECT_EQ(lines, row.lines) << row.name;
    EXPECT_EQ(int64_t(loops.size()), row.loops) << row.name;
  }
}

TEST(GeomGcn, SameGraphAsTheHeterophilousEdition) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  for (const auto& [text, npz] : {std::pair("cornell", "cornell"), {"wisconsin", "wisconsin"}, {"film", "actor"}}) {
    const NodeDataset a = load_geom_gcn(data / "geom-gcn" / text, text);
    const NodeDataset b = load_graph_npz(data / "heterophilous" / (std::string(npz) + ".npz"));
    EXPECT_EQ(a.labels.to_vector<int32_t>(), b.labels.to_vector<int32_t>()) << text;
    EXPECT_EQ(a.src.to_vector<int32_t>(), b.src.to_vector<int32_t>()) << text;
    EXPECT_EQ(a.dst.to_vector<int32_t>(), b.dst.to_vector<int32_t>()) << text;
    ASSERT_EQ(a.num_features, b.num_features);
    std::vector<float> row(size_t(a.num_features));
    for (int64_t i = 0; i < a.num_nodes; ++i) {
      std::fill(row.begin(), row.end(), 0.0f);
      for (int64_t k = a.feature_rowptr.data<int64_t>()[i]; k < a.feature_rowptr.data<int64_t>()[i + 1]; ++k)
        row[size_t(a.feature_col.data<int32_t>()[k])] = a.feature_values.data<float>()[k];
      EXPECT_TRUE(std::equal(row.begin(), row.end(), b.features.data<float>() + i * b.num_features)) << text << " " << i;
    }
  }
}

TEST(GeomGcn, SplitsOfThePlanetoidSets) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  struct Sizes {
    const char* name;
    int64_t nodes, train, valid, test;
  };
  for (const Sizes& row : {Sizes{"cora", 2708, 1192, 796, 497}, Sizes{"citeseer", 3327, 1596, 1065, 666},
                           Sizes{"pubmed", 19717, 9463, 6310, 3944}}) {
    const std::vector<NodeSplit> splits = load_geom_gcn_splits(data / "geom-gcn/splits", row.name, row.nodes);
    ASSERT_EQ(splits.size(), 10u);
    EXPECT_EQ(splits[0].train.numel(), row.train);
    EXPECT_EQ(splits[0].valid.numel(), row.valid);
    EXPECT_EQ(splits[0].test.numel(), row.test);
  }
}

class SmallGeomGcn : public testing::Test {
 protected:
  void SetUp() override {
    edges("node_id\tnode_id\r\n0\t1\r\n2\t2\r\n1\t0\r\n");
    nodes("node_id\tfeature\tlabel\r\n2\t0,1\t1\r\n0\t1,1\t0\r\n1\t0,0\t1");
  }
  void edges(const std::string& text) { put(folder_ / "out1_graph_edges.txt", text); }
  void nodes(const std::string& text) { put(folder_ / "out1_node_feature_label.txt", text); }
  std::string error(const std::string& file) {
    const std::string text = error_of<IoError>([&] { load_geom_gcn(folder_.path(), "small"); });
    const std::string prefix = folder_ / file;
    EXPECT_EQ(text.rfind(prefix, 0), 0u) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  }
  std::string node_error(const std::string& text) {
    nodes(text);
    return error("out1_node_feature_label.txt");
  }
  TemporaryFolder folder_;
};

TEST_F(SmallGeomGcn, RowsInAnyOrder) {
  const NodeDataset set = load_geom_gcn(folder_.path(), "small");
  EXPECT_EQ(set.labels.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(set.feature_rowptr.to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(set.feature_col.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(set.num_directed_edges(), 2);
  nodes("node_id\tfeature(feature_amount:5)\tlabel\n1\t5,2\t0\n0\t\t1\n2\t2\t1\n");
  const NodeDataset listed = load_geom_gcn(folder_.path(), "small");
  EXPECT_EQ(listed.num_features, 6);
  EXPECT_EQ(listed.feature_rowptr.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 2, 3}));
  EXPECT_EQ(listed.feature_col.to_vector<int32_t>(), (std::vector<int32_t>{2, 5, 2}));
}

TEST_F(SmallGeomGcn, WhatDoesNotFit) {
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\t0\n0\t1\t0\n"), ": lines 2 and 3 are both of node 0");
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\t0\n2\t1\t0\n"), ": there is no line for node 1");
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\t0\nx\t1\t0\n"), ": line 3 has the node 'x', expected an id, 0 or more");
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\t0\n1\t1,2\t0\n"), ": line 3 has the feature '2', expected 0 or 1");
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\t0\n1\t1,1\t0\n"), ": line 3 has 2 features, expected 1 as before");
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\tnan\n"), ": line 2 has the label 'nan', expected an integer");
  EXPECT_EQ(node_error("n\tf\tl\n0\t1\n"), ": line 2 has 2 fields, expected 3 as before");
  EXPECT_EQ(node_error("n\tf\n0\t1\n"), ": line 1 has 2 fields, expected node, features and label by tabs");
  EXPECT_EQ(node_error("n\tfeature_amount:3\tl\n0\tx\t1\n"), ": line 2 has the feature 'x', expected its number");
  SetUp();
  edges("a\tb\n0\t3\n");
  EXPECT_EQ(error("out1_graph_edges.txt"), ": edge 0 has the node 3, expected 0 to 2");
  edges("a\tb\n0\t-1\n");
  EXPECT_EQ(error("out1_graph_edges.txt"), ": line 2 has the node '-1', expected an id, 0 or more");
}

}  // namespace
}  // namespace tessera
