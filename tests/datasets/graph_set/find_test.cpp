#include "tessera/datasets/graph_set/find.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "tessera/core/error.h"
#include "tessera/datasets/graph_set/folds.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

struct Row {
  const char *asked, *name;
  int64_t graphs, nodes, edges, labels, outputs;  // labels: -1 where there are some that are not looked at
  std::vector<int64_t> classes;                   // counts; empty: not looked at
};

std::vector<int64_t> class_counts(const GraphSet& set) {
  std::vector<int64_t> out(static_cast<size_t>(set.outputs));
  for (const int32_t y : set.y.span<int32_t>()) ++out[size_t(y)];
  return out;
}

// Counts of shared/data/README.md: lines of the files, of which loops and repetitions are left out.
TEST(GraphSets, PublishedSets) {
  if (!test::have_shared_data()) return;
  const std::vector<Row> rows = {
      {"MUTAG", "MUTAG", 188, 3371, 7442, 7, 2, {63, 125}},
      {"proteins", "PROTEINS", 1113, 43471, 162088, 3, 2, {663, 450}},
      {"ENZYMES", "ENZYMES", 600, 19580, 74564, 3, 6, {100, 100, 100, 100, 100, 100}},
      {"NCI1", "NCI1", 4110, 122747, 265506, 37, 2, {2053, 2057}},
      {"imdb_binary", "IMDB-BINARY", 1000, 19773, 386124, 0, 2, {500, 500}},
      {"Cuneiform", "Cuneiform", 267, 5680, 23922, -1, 30, {}},
      {"PTC_MR", "PTC_MR", 344, 4915, 10108, 18, 2, {192, 152}},
      {"Mutagenicity", "Mutagenicity", 4337, 131488, 266894, 14, 2, {2401, 1936}},
      {"PROTEINS_full", "PROTEINS_full", 1113, 43471, 162088, 3, 2, {663, 450}},
      {"Fingerprint", "Fingerprint", 2800, 15167, 24756, 0, 15, {}},
      {"tu-gin/MUTAG", "MUTAG", 188, 3371, 7442, 7, 2, {63, 125}},
      {"tu-gin/PROTEINS", "PROTEINS", 1113, 43471, 162088, 3, 2, {663, 450}},
      {"tu-gin/NCI1", "NCI1", 4110, 122747, 265506, 37, 2, {}},
      {"tu-gin/ENZYMES", "ENZYMES", 600, 19580, 74564, 3, 6, {100, 100, 100, 100, 100, 100}},
      {"tu-gin/IMDB-BINARY", "IMDB-BINARY", 1000, 19773, 193062, 0, 2, {500, 500}},
      {"DD", "DD", 1178, 334925, 1686092, -1, 2, {691, 487}},
      {"REDDIT-BINARY", "REDDIT-BINARY", 2000, 859254, 1991016, 0, 2, {1000, 1000}},
  };
  for (const Row& row : rows) {
    GraphSet set = load_graph_set(row.asked, {test::shared_data().string()});
    EXPECT_EQ(set.name, row.name);
    EXPECT_EQ(set.num_graphs(), row.graphs) << row.asked;
    EXPECT_EQ(set.num_nodes(), row.nodes) << row.asked;
    EXPECT_EQ(set.num_edges() + set.loops_left_out + set.edges_merged, row.edges) << row.asked;
    EXPECT_EQ(set.task, GraphTask::classes);
    EXPECT_EQ(set.outputs, row.outputs) << row.asked;
    if (!row.classes.empty()) {
      EXPECT_EQ(class_counts(set), row.classes) << row.asked;
    }
    EXPECT_EQ(set.sha256.size(), 64u);
    if (row.labels > 0) {
      EXPECT_EQ(set.node_label_values, std::vector<int64_t>{row.labels}) << row.asked;
    } else {
      EXPECT_EQ(set.node_labels.defined(), row.labels < 0) << row.asked;
    }
  }
}

TEST(GraphSets, Quirks) {
  if (!test::have_shared_data()) return;
  const std::vector<std::string> data = {test::shared_data().string()};
  const GraphSet imdb = load_graph_set("IMDB-BINARY", data);
  EXPECT_EQ(imdb.edges_merged, 193062) << "every edge is listed twice";
  EXPECT_EQ(imdb.num_edges(), 193062);
  const GraphSet cuneiform = load_graph_set("Cuneiform", data);
  EXPECT_EQ(cuneiform.node_labels.dim(1), 2);
  EXPECT_EQ(cuneiform.node_attributes.dim(1), 3);
  const GraphSet prints = load_graph_set("Fingerprint", data);
  int64_t without_nodes = 0;
  for (int64_t g = 0; g < prints.num_graphs(); ++g) without_nodes += prints.nodes_of(g) == 0;
  EXPECT_GT(without_nodes, 0);
  EXPECT_EQ(prints.edge_attr.dim(1), 2);
  const GraphSet dd = load_graph_set("DD", data);
  EXPECT_EQ(dd.node_label_values, std::vector<int64_t>{89}) << "82 tags among 0 .. 88";
  EXPECT_EQ(dd.splits.size(), 10u);
  EXPECT_EQ(load_graph_set("PROTEINS_full", data).node_attributes.dim(1), 29);
  EXPECT_EQ(load_graph_set("PROTEINS", data).node_attributes.dim(1), 1);
  EXPECT_EQ(load_graph_set("MUTAG", data).edge_attr.dim(1), 4);
  // The archive and the folder hold the same set.
  const GraphSet zipped = load_graph_set(data[0] + "/tu/zip/MUTAG.zip", {}), folder = load_graph_set("MUTAG", data);
  EXPECT_EQ(zipped.name, "MUTAG");
  EXPECT_EQ(zipped.src.to_vector<int32_t>(), folder.src.to_vector<int32_t>());
  EXPECT_EQ(zipped.rowptr.to_vector<int64_t>(), folder.rowptr.to_vector<int64_t>());
  EXPECT_EQ(zipped.edge_attr.to_vector<float>(), folder.edge_attr.to_vector<float>());
}

TEST(GraphSets, TheTwoEditionsOfASetHaveTheSameGraphs) {
  if (!test::have_shared_data()) return;
  const std::vector<std::string> data = {test::shared_data().string()};
  const auto shapes = [](const GraphSet& set) {
    std::vector<std::pair<int64_t, int64_t>> out;
    for (int64_t g = 0; g < set.num_graphs(); ++g) out.emplace_back(set.nodes_of(g), set.edges_of(g));
    std::sort(out.begin(), out.end());
    return out;
  };
  for (const char* name : {"MUTAG", "PROTEINS", "NCI1", "IMDB-BINARY"})
    EXPECT_EQ(shapes(load_graph_set(std::string("tu/") + name, data)),
              shapes(load_graph_set(std::string("tu-gin/") + name, data)))
        << name;
}

TEST(GraphSets, MoleculesOfOgb) {
  if (!test::have_shared_data()) return;
  const std::vector<std::string> data = {test::shared_data().string()};
  const GraphSet bace = load_graph_set("ogbg_molbace", data);
  EXPECT_EQ(bace.name, "ogbg-molbace");
  EXPECT_EQ(bace.num_graphs(), 1513);
  EXPECT_NEAR(double(bace.num_nodes()) / 1513, 34.09, 0.005);
  EXPECT_NEAR(double(bace.num_edges()) / 2 / 1513, 36.86, 0.005) << "both directions of each bond";
  EXPECT_EQ(bace.x.dim(1), 9);
  EXPECT_EQ(bace.x.dtype(), DType::i64);
  EXPECT_EQ(bace.edge_attr.dim(1), 3);
  EXPECT_EQ(bace.edge_attr.dtype(), DType::i64);
  EXPECT_EQ(bace.task, GraphTask::binary);
  EXPECT_EQ(bace.outputs, 1);
  EXPECT_EQ(bace.metric, "roc-auc");
  const auto y = bace.y.span<float>();
  EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0) / 1513, 0.4567, 5e-5);
  ASSERT_EQ(bace.splits.size(), 1u);
  EXPECT_EQ(bace.splits[0].train.numel(), 1210);
  EXPECT_EQ(bace.splits[0].valid.numel(), 151);
  EXPECT_EQ(bace.splits[0].test.numel(), 152);

  const GraphSet esol = load_graph_set("ogbg-molesol", data);
  EXPECT_EQ(esol.num_graphs(), 1128);
  EXPECT_EQ(esol.task, GraphTask::regression);
  EXPECT_EQ(esol.metric, "rmse");
  const auto values = esol.y.span<float>();
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -11.6F);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 1.58F);
  int64_t bare = 0;
  for (int64_t g = 0; g < 1128; ++g) bare += esol.edges_of(g) == 0;
  EXPECT_EQ(bare, 1);
  EXPECT_EQ(esol.splits[0].train.numel(), 902);
  EXPECT_EQ(esol.splits[0].test.numel(), 113);
}

TEST(GraphSets, FoldsAreScikitLearns) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  for (const char* name : {"MUTAG", "PROTEINS", "NCI1", "IMDB-BINARY", "ENZYMES", "DD", "REDDIT-BINARY"}) {
    const GraphSet set = load_graph_set(name, {data.string()});
    EXPECT_EQ(stratified_folds(set.y, 10, 12345),
              load_folds(data / "folds" / (std::string(name) + ".csv"), set.num_graphs(), 10))
        << name;
  }
}

TEST(GraphSets, NamesAndPlaces) {
  const TemporaryFolder folder;
  const std::string data = folder.path();
  const auto error = [&](const std::string& name) {
    try {
      load_graph_set(name, {data});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("MUTAG"), "the set of graphs 'MUTAG' is not there; looked for a folder or zip of that name in " + data +
                                " and below it in tu, tu/zip, tu-gin, tu-gin/zip, ogb");
  EXPECT_TRUE(error("PROTIENS")
                  .starts_with("the set of graphs 'PROTIENS' is not known, did you mean 'PROTEINS'? Known are AIDS, BZR, "));
  EXPECT_TRUE(error("something-else").starts_with("the set of graphs 'something-else' is not known; known are AIDS, "));
  std::filesystem::create_directories(folder / "mine");
  EXPECT_EQ(
      error(folder / "mine"),
      folder / "mine" +
          ": is no set of graphs: there is no NAME_A.txt, no NAME.txt beside 10fold_idx/, no raw/num-node-list.csv.gz");
  put(folder / "mine/mine.txt", "1\n2 5\n0 1 1\n0 1 0\n");
  for (const std::string& name : {std::string("mine"), folder / "mine", folder / "mine/"}) {
    const GraphSet own = load_graph_set(name, {data});
    EXPECT_EQ(own.name, "mine");
    EXPECT_EQ(own.num_edges(), 2);
    EXPECT_EQ(own.class_names, std::vector<std::string>{"5"});
  }
  EXPECT_EQ(load_graph_set("mine", {folder / "mine"}).num_graphs(), 1) << "the folder itself";
}

}  // namespace
}  // namespace tessera
