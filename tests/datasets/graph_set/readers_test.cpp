// Small sets of each form, and whatever does not fit one.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tessera/core/error.h"
#include "tessera/datasets/graph_set/gin_text.h"
#include "tessera/datasets/graph_set/number_lines.h"
#include "tessera/datasets/graph_set/ogb_graphs.h"
#include "tessera/datasets/graph_set/tu.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

using Ints = std::vector<int32_t>;
using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;

class SmallSet : public testing::Test {
 protected:
  void file(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    put(folder_ / name, text);
  }
  template <class Load>
  std::string error(const Load& load) {
    const std::string text = error_of<IoError>([&] {
      FileSource files(folder_.path());
      load(files);
    });
    const std::string prefix = folder_.path() + "/";
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  }
  TemporaryFolder folder_;
};

class SmallTu : public SmallSet {
 protected:
  // H35: node 5 has no edge, node 4 a loop; here also a second graph.
  void SetUp() override {
    file("S_graph_indicator.txt", "1\n1\n1\n1\n1\n2\n2\n");
    file("S_A.txt", "1, 2\n2, 1\n2, 3\n3, 2\n4, 4\n7,6\n");
    file("S_graph_labels.txt", "1\n-1\n");
    file("S_node_labels.txt", "3\n3\n5\n3\n3\n4\n4\n");
  }
  GraphSet load() {
    FileSource files(folder_.path());
    EXPECT_TRUE(is_tu(files));
    return load_tu(files);
  }
  std::string error_with(const std::string& name, const std::string& text) {
    SetUp();
    file(name, text);
    return error([](FileSource& files) { load_tu(files); });
  }
};

TEST_F(SmallTu, TheIndicatorSaysWhichNodesThereAre) {
  const GraphSet set = load();
  EXPECT_EQ(set.name, "S");
  EXPECT_EQ(set.node_offsets.to_vector<int64_t>(), (Longs{0, 5, 7}));
  EXPECT_EQ(set.rowptr.to_vector<int64_t>(), (Longs{0, 1, 3, 4, 4, 4, 5, 5}));
  EXPECT_EQ(set.src.to_vector<int32_t>(), (Ints{1, 0, 2, 1, 1}));
  EXPECT_EQ(set.loops_left_out, 1);
  EXPECT_EQ(set.edges_merged, 0);
  EXPECT_EQ(set.y.to_vector<int32_t>(), (Ints{1, 0}));
  EXPECT_EQ(set.class_names, (std::vector<std::string>{"-1", "1"}));
  EXPECT_EQ(set.node_labels.to_vector<int32_t>(), (Ints{0, 0, 2, 0, 0, 1, 1}));
  EXPECT_EQ(set.node_label_values, (Longs{3}));
}

TEST_F(SmallTu, LineEndsAndEmptyLinesAtTheEnd) {
  const GraphSet plain = load();
  file("S_graph_indicator.txt", "1\r\n1\r\n1\r\n1\r\n1\r\n2\r\n2");
  file("S_A.txt", "1 2\n2\t1\n2 ,3\n3,2\n4, 4\n7, 6\n\n");
  file("S_graph_labels.txt", "1\n-1\n\n \n");
  const GraphSet odd = load();
  EXPECT_EQ(odd.src.to_vector<int32_t>(), plain.src.to_vector<int32_t>());
  EXPECT_EQ(odd.node_offsets.to_vector<int64_t>(), plain.node_offsets.to_vector<int64_t>());
  EXPECT_EQ(odd.y.to_vector<int32_t>(), plain.y.to_vector<int32_t>());
}

TEST_F(SmallTu, ValuesOfEdgesFollowThem) {
  file("S_A.txt", "2, 1\n1, 2\n2, 1\n4, 4\n7, 6\n3, 1\n");
  file("S_edge_attributes.txt", "1\n2\n4\n8\n16\n32\n");
  file("S_edge_labels.txt", "7\n8\n9\n7\n7\n7\n");
  const GraphSet set = load();
  EXPECT_EQ(set.rowptr.to_vector<int64_t>(), (Longs{0, 2, 3, 3, 3, 3, 4, 4}));
  EXPECT_EQ(set.src.to_vector<int32_t>(), (Ints{1, 2, 0, 1}));
  EXPECT_EQ(set.edges_merged, 1);
  EXPECT_EQ(set.edge_attr.to_vector<float>(), (Floats{5, 1, 0, 1, 32, 1, 0, 0, 2, 0, 1, 0, 16, 1, 0, 0}));
}

TEST_F(SmallTu, SeveralLabelsAttributesAndTargets) {
  file("S_node_labels.txt", "0, 5\n1, 5\n0, 6\n0, 5\n0, 5\n0, 5\n0, 5\n");
  file("S_node_attributes.txt", "1.5\n-2e3\n0\n0\n0\n0\n7\n");
  GraphSet set = load();
  EXPECT_EQ(set.node_label_values, (Longs{2, 2}));
  choose_features(set, GraphFeatures::all);
  EXPECT_EQ(set.num_features, 5);
  EXPECT_EQ(set.sample(Ints{0}).x.view_rows(0, 3).to_vector<float>(),
            (Floats{1.5F, 1, 0, 1, 0, -2000, 0, 1, 1, 0, 0, 1, 0, 0, 1}));
  file("S_graph_labels.txt", "1, 0\n0, 0\n");
  set = load();
  EXPECT_EQ(set.task, GraphTask::binary);
  EXPECT_EQ(set.y.to_vector<float>(), (Floats{1, 0, 0, 0}));
  file("S_graph_attributes.txt", "1.25, nan\n-3,4\n");
  set = load();
  EXPECT_EQ(set.task, GraphTask::regression);
  EXPECT_EQ(set.outputs, 2);
  EXPECT_EQ(set.y.data<float>()[0], 1.25F);
  EXPECT_TRUE(std::isnan(set.y.data<float>()[1]));
}

TEST_F(SmallTu, WhatDoesNotFit) {
  EXPECT_EQ(error_with("S_node_labels.txt", "1\n1\n1\n1\n1\n1\n"), "S_node_labels.txt: has 6 lines, but there are 7 nodes");
  EXPECT_EQ(error_with("S_node_labels.txt", "1\n1\n\n1\n1\n1\n1\n"), "S_node_labels.txt: line 3 is empty, expected numbers");
  EXPECT_EQ(error_with("S_node_labels.txt", "1\n1\n1\n1\n1\n1\n1, 2\n"),
            "S_node_labels.txt: line 7 has 2 numbers, expected 1");
  EXPECT_EQ(error_with("S_node_labels.txt", "1\n1\n1\n1\n1\n1\n1.5\n"),
            "S_node_labels.txt: line 7 has '1.5', expected an integer");
  EXPECT_EQ(error_with("S_node_labels.txt", "1\n1\n1\n1\n1\n1\n999999999999\n"),
            "S_node_labels.txt: has labels from 1 to 999999999999, expected at most 100000 different ones");
  std::filesystem::remove(folder_ / "S_node_labels.txt");
  EXPECT_EQ(error_with("S_A.txt", "1, 2\n0, 1\n"), "S_A.txt: line 2 has the node 0, expected 1 to 7");
  EXPECT_EQ(error_with("S_A.txt", "1, 2\n1, 8\n"), "S_A.txt: line 2 has the node 8, expected 1 to 7");
  EXPECT_EQ(error_with("S_A.txt", "1, 2\n5, 6\n"), "S_A.txt: line 2 joins node 5 of graph 1 and node 6 of graph 2");
  EXPECT_EQ(error_with("S_A.txt", "1, 2, 3\n"), "S_A.txt: line 1 has 3 numbers, expected 2");
  EXPECT_EQ(error_with("S_A.txt", "1, 2\n3\n"), "S_A.txt: line 2 has 1 numbers, expected 2");
  EXPECT_EQ(error_with("S_A.txt", "1, \n"), "S_A.txt: line 1 has '', expected an integer");
  SetUp();
  EXPECT_EQ(error_with("S_graph_indicator.txt", "1\n2\n1\n"),
            "S_graph_indicator.txt: line 3 has the graph 1 after graph 2, expected an ascending order");
  EXPECT_EQ(error_with("S_graph_indicator.txt", "0\n"), "S_graph_indicator.txt: line 1 has the graph 0, expected 1 or more");
  EXPECT_EQ(error_with("S_graph_indicator.txt", "1\n3\n"),
            "S_graph_indicator.txt: line 2 has the graph 3, but S_graph_labels.txt has 2 lines");
  SetUp();
  EXPECT_EQ(error_with("S_graph_labels.txt", "1\n"),
            "S_graph_indicator.txt: line 6 has the graph 2, but S_graph_labels.txt has 1 lines");
  EXPECT_EQ(error_with("S_graph_labels.txt", "1, 0\n0, 2\n"),
            "S_graph_labels.txt: line 2 has '2', expected 0 or 1 where there are several columns");
  EXPECT_EQ(error_with("S_edge_labels.txt", "1\n"), "S_edge_labels.txt: has 1 lines, but there are 6 edges in S_A.txt");
  std::filesystem::remove(folder_ / "S_edge_labels.txt");
  EXPECT_EQ(error_with("S_node_attributes.txt", "1\n1\n1\n1\n1\n1\ninf\n"),
            "S_node_attributes.txt: line 7 has 'inf', expected a finite number");
  std::filesystem::remove(folder_ / "S_graph_indicator.txt");
  EXPECT_EQ(error([](FileSource& files) { load_tu(files); }),
            "S_graph_indicator.txt: cannot be opened: No such file or directory");
}

// H20: a graph without nodes is a graph, wherever it stands.
TEST_F(SmallTu, GraphsWithoutNodesStay) {
  file("S_graph_indicator.txt", "2\n2\n");
  file("S_A.txt", "1, 2\n");
  file("S_graph_labels.txt", "1\n-1\n1\n");
  std::filesystem::remove(folder_ / "S_node_labels.txt");
  GraphSet set = load();
  EXPECT_EQ(set.node_offsets.to_vector<int64_t>(), (Longs{0, 0, 2, 2}));
  choose_features(set, GraphFeatures::constant);
  const GraphSample sample = set.sample(Ints{2, 1, 0});
  EXPECT_EQ(sample.batch.num_graphs(), 3);
  EXPECT_EQ(sample.batch.node_offsets().to_vector<int64_t>(), (Longs{0, 0, 2, 2}));
  EXPECT_EQ(sample.x.to_vector<float>(), (Floats{1, 1}));
  EXPECT_EQ(sample.y.to_vector<int32_t>(), (Ints{1, 0, 1}));
}

class SmallGin : public SmallSet {
 protected:
  GraphSet load(const std::string& text) {
    file("G.txt", text);
    std::filesystem::create_directories(folder_ / "10fold_idx");
    FileSource files(folder_.path());
    EXPECT_TRUE(is_gin_text(files));
    return load_gin_text(files);
  }
  std::string error_with(const std::string& text) {
    file("G.txt", text);
    std::filesystem::create_directories(folder_ / "10fold_idx");
    return error([](FileSource& files) { load_gin_text(files); });
  }
};

TEST_F(SmallGin, TagsNeighboursAttributes) {
  EXPECT_FALSE(load("1\n2 0\n7 1 1\n7 1 0\n").node_labels.defined()) << "one tag says nothing";
  file("10fold_idx/train_idx-1.txt", "1\n");
  file("10fold_idx/test_idx-1.txt", "0\n");
  const GraphSet set = load("2\r\n2 2\r\n4 1 1 0.5 7\r\n6 2 0 1 -1 8\r\n1 0\r\n4 0 2 9");
  EXPECT_EQ(set.num_graphs(), 2);
  EXPECT_EQ(set.y.to_vector<int32_t>(), (Ints{1, 0}));
  EXPECT_EQ(set.class_names, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ(set.node_labels.to_vector<int32_t>(), (Ints{0, 2, 0}));
  EXPECT_EQ(set.rowptr.to_vector<int64_t>(), (Longs{0, 1, 2, 2}));
  EXPECT_EQ(set.src.to_vector<int32_t>(), (Ints{1, 0}));
  EXPECT_EQ(set.loops_left_out, 1);
  EXPECT_EQ(set.node_attributes.to_vector<float>(), (Floats{0.5F, 7, -1, 8, 2, 9}));
  ASSERT_EQ(set.splits.size(), 1u);
  EXPECT_EQ(set.splits[0].train.to_vector<int32_t>(), Ints{1});
  EXPECT_EQ(set.splits[0].valid.numel(), 0);
}

TEST_F(SmallGin, WhatDoesNotFit) {
  EXPECT_EQ(error_with(""), "G.txt: ends after line 1, expected the number of graphs");
  EXPECT_EQ(error_with("x\n"), "G.txt: line 1 has 'x', expected an integer");
  EXPECT_EQ(error_with("9999999999\n"), "G.txt: line 1 has 9999999999 graphs in 11 bytes");
  EXPECT_EQ(error_with("1\n2\n"), "G.txt: line 2 ends too soon, expected a graph's number of nodes and label");
  EXPECT_EQ(error_with("1\n-2 0\n"), "G.txt: line 2 has -2 nodes, expected a count");
  EXPECT_EQ(error_with("1\n1 0 3\n0 0\n"), "G.txt: line 2 has more than a graph's number of nodes and label before '3'");
  EXPECT_EQ(error_with("1\n2 0\n0 0\n"),
            "G.txt: ends after line 4, expected a node's tag, number of neighbours and neighbours");
  EXPECT_EQ(error_with("1\n2 0\n0 1 2\n0 0\n"), "G.txt: line 3 has the neighbour 2, expected 0 to 1");
  EXPECT_EQ(error_with("1\n2 0\n0 3 1\n0 0\n"),
            "G.txt: line 3 ends too soon, expected a node's tag, number of neighbours and neighbours");
  EXPECT_EQ(error_with("1\n2 0\n0 0 1.5\n0 0\n"), "G.txt: line 4 has 0 attributes, expected 1 as before");
  EXPECT_EQ(error_with("1\n1 0\n0 0 nan\n"), "G.txt: line 3 has a number that is not finite");
  EXPECT_EQ(error_with("1\n1 0\n0 0\n1 0\n"), "G.txt: line 4 comes after the last graph");
  file("10fold_idx/train_idx-1.txt", "0\n");
  file("10fold_idx/test_idx-1.txt", "1\n");
  EXPECT_EQ(error_with("1\n1 0\n0 0\n"), "10fold_idx/test_idx-1.txt: line 1 has the graph 1, expected 0 to 0");
  file("10fold_idx/test_idx-1.txt", "0\n");
  EXPECT_EQ(error_with("1\n1 0\n0 0\n"), "10fold_idx/test_idx-1.txt: graph 0 is in the split twice");
  file("10fold_idx/test_idx-1.txt", "");
  file("10fold_idx/train_idx-3.txt", "0\n");
  EXPECT_EQ(error_with("1\n1 0\n0 0\n"), "10fold_idx/train_idx-2.txt: is missing");
}

class SmallOgb : public SmallSet {
 protected:
  void SetUp() override {
    file("raw/num-node-list.csv", "2\n1\n3\n");
    file("raw/num-edge-list.csv", "1\n0\n2\n");
    file("raw/edge.csv", "0,1\n2,0\n0,1\n");
    file("raw/node-feat.csv", "1,0\n2,0\n3,0\n4,0\n5,0\n6,0\n");
    file("raw/edge-feat.csv", "7\n8\n9\n");
    file("raw/graph-label.csv", "1,0\n,1\n0,\n");
    for (const auto& [part, id] : {std::pair("train", "0\n"), {"valid", "2\n"}, {"test", "1\n"}})
      file(std::string("split/scaffold/") + part + ".csv", id);
  }
  GraphSet load(const std::string& name = "own") {
    FileSource files(folder_.path());
    EXPECT_TRUE(is_ogb_graphs(files));
    return load_ogb_graphs(files, name);
  }
  std::string error_with(const std::string& name, const std::string& text) {
    SetUp();
    file(name, text);
    return error([](FileSource& files) { load_ogb_graphs(files, "own"); });
  }
};

// H36: a missing label is neither yes nor no.
TEST_F(SmallOgb, BondsBothWaysAndMissingLabels) {
  const GraphSet set = load();
  EXPECT_EQ(set.node_offsets.to_vector<int64_t>(), (Longs{0, 2, 3, 6}));
  EXPECT_EQ(set.rowptr.to_vector<int64_t>(), (Longs{0, 1, 2, 2, 4, 5, 6}));
  EXPECT_EQ(set.src.to_vector<int32_t>(), (Ints{1, 0, 1, 2, 0, 0}));
  EXPECT_EQ(set.edge_attr.to_vector<int64_t>(), (Longs{7, 7, 9, 8, 9, 8}));
  EXPECT_EQ(set.num_features, 2);
  EXPECT_EQ(set.task, GraphTask::binary);
  EXPECT_EQ(set.outputs, 2);
  const auto y = set.y.span<float>();
  EXPECT_EQ(y[0], 1);
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[5]));
  EXPECT_EQ(set.splits[0].valid.to_vector<int32_t>(), Ints{2});
  const GraphSample sample = set.sample(Ints{2, 0});
  EXPECT_EQ(sample.x.to_vector<int64_t>(), (Longs{4, 0, 5, 0, 6, 0, 1, 0, 2, 0}));
  EXPECT_EQ(sample.edge_attr.to_vector<int64_t>(), (Longs{9, 8, 9, 8, 7, 7}));
  EXPECT_EQ(sample.batch.graph.col().to_vector<int32_t>(), (Ints{1, 2, 0, 0, 4, 3}));
  EXPECT_EQ(sample.batch.edge_offsets.to_vector<int64_t>(), (Longs{0, 4, 6}));
}

TEST_F(SmallOgb, OneTaskTargetsAndClasses) {
  file("raw/graph-label.csv", "1\n\n\n");
  GraphSet set = load();
  EXPECT_EQ(set.task, GraphTask::binary);
  EXPECT_TRUE(std::isnan(set.y.data<float>()[1]) && std::isnan(set.y.data<float>()[2]));
  file("raw/graph-label.csv", "1.5\n-2\n0\n");
  EXPECT_EQ(load().task, GraphTask::regression);
  file("raw/graph-label.csv", "5\n3\n5\n");
  set = load();
  EXPECT_EQ(set.task, GraphTask::classes);
  EXPECT_EQ(set.y.to_vector<int32_t>(), (Ints{1, 0, 1}));
  file("raw/node-feat.csv", "1\n2\n3\n4.5\n5\n6\n");
  EXPECT_EQ(load().x.dtype(), DType::f32);
}

TEST_F(SmallOgb, WhatDoesNotFit) {
  EXPECT_EQ(error_with("raw/num-edge-list.csv", "1\n0\n"), "raw/num-edge-list.csv: has 2 lines, but there are 3 graphs");
  EXPECT_EQ(error_with("raw/num-edge-list.csv", "1\n0\n3\n"),
            "raw/num-edge-list.csv: line 3 has 3 edges, but 2 are left in raw/edge.csv");
  EXPECT_EQ(error_with("raw/num-edge-list.csv", "1\n0\n1\n"),
            "raw/edge.csv: has 3 lines, but " + folder_ / "raw/num-edge-list.csv" + " has 2 edges in all");
  EXPECT_EQ(error_with("raw/num-node-list.csv", "2\n-1\n3\n"),
            "raw/num-node-list.csv: line 2 is -1, expected a count of nodes");
  EXPECT_EQ(error_with("raw/edge.csv", "0,1\n3,0\n0,1\n"), "raw/edge.csv: line 2 has the node 3, but graph 2 has 3 nodes");
  EXPECT_EQ(error_with("raw/node-feat.csv", "1\n"), "raw/node-feat.csv: has 1 lines, but there are 6 nodes");
  EXPECT_EQ(error_with("raw/edge-feat.csv", "1\n"), "raw/edge-feat.csv: has 1 lines, but there are 3 edges");
  EXPECT_EQ(error_with("raw/graph-label.csv", "1\n0\n"), "raw/graph-label.csv: has 2 lines, but there are 3 graphs");
  EXPECT_EQ(error_with("split/scaffold/test.csv", "3\n"),
            "split/scaffold/test.csv: line 1 has the graph 3, expected 0 to 2");
  EXPECT_EQ(error_with("split/scaffold/test.csv", "2\n2\n"), "split/scaffold: graph 2 is in the split twice");
  std::filesystem::remove(folder_ / "raw/node-feat.csv");
  EXPECT_EQ(error([](FileSource& files) { load_ogb_graphs(files, "ogbg-molown"); }), "raw/node-feat.csv.gz: is missing");
  SetUp();
  std::filesystem::remove(folder_ / "split/scaffold/valid.csv");
  EXPECT_EQ(error([](FileSource& files) { load_ogb_graphs(files, "own"); }), "split/scaffold/valid.csv.gz: is missing");
  SetUp();
  std::filesystem::remove(folder_ / "raw/node-feat.csv");
  file("raw/num-node-list.csv", "2\n1\n2000000000\n");
  EXPECT_EQ(error([](FileSource& files) { load_ogb_graphs(files, "own"); }),
            "raw/num-node-list.csv: has 2000000003 nodes in all, without features and with 3 edges");
  SetUp();
  file("raw/graph-label.csv", "2\n0\n1\n");
  EXPECT_EQ(error([](FileSource& files) { load_ogb_graphs(files, "ogbg-molbace"); }),
            "raw/graph-label.csv: line 1 has 2, expected 0, 1 or nothing");
  EXPECT_EQ(error_of<Unsupported>([&] { load("ogbg-code2"); }),
            folder_.path() + ": the labels of ogbg-code2 are words, which no model here tells");
}

TEST(FileSource, FilesInMemory) {
  FileSource files("S", {{"S_A.txt", "1, 2\n"}, {"raw/x", "1"}, {"raw/y/z", "2"}});
  EXPECT_EQ(files.names(), (std::vector<std::string>{"S_A.txt", "raw/"}));
  EXPECT_EQ(files.names("raw"), (std::vector<std::string>{"x", "y/"}));
  EXPECT_TRUE(is_tu(files));
  EXPECT_EQ(error_of<IoError>([&] { load_tu(files); }), "S: has no file S_graph_labels.txt");
}

TEST(NumberLines, MissingCells) {
  const NumberLines<float> read = read_reals("1,,3\n,,\n", "t", Missing::nan);
  EXPECT_EQ(read.lines, 2);
  EXPECT_TRUE(std::isnan(read.at(0, 1)) && std::isnan(read.at(1, 2)));
  EXPECT_EQ(error_of<IoError>([] { read_reals("1,,3\n", "t"); }), "t: line 1 has '', expected a finite number");
  EXPECT_EQ(read_integers("+4 -5\n", "t").values, (Longs{4, -5}));
  EXPECT_FALSE(all_integers("1\n2.0\n"));
  EXPECT_TRUE(all_integers("1,2\n-3,4\n"));
}

}  // namespace
}  // namespace tessera
