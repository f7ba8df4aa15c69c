#include "tessera/datasets/graph/planetoid.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/pickle.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/graph/graph_facts.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

using namespace std::string_literals;

// Pieces of pickles as numpy and scipy of Python 2 make them.
std::string number(int64_t value) {
  std::string out = "J....";
  const int32_t narrow = int32_t(value);
  std::memcpy(out.data() + 1, &narrow, 4);
  return out;
}
std::string text(const std::string& value) { return std::string("U").append(1, char(value.size())).append(value); }
template <class T>
std::string array(const std::vector<T>& values, const char* type, const std::vector<int64_t>& shape) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string sizes = "(";
  for (const int64_t size : shape) sizes += number(size);
  return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R(K\1"s + sizes + "tcnumpy\ndtype\n" +
         text(type) + "K\0K\1\x87R(K\3U\1<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89T"s +
         number(int64_t(bytes.size())).substr(1) + bytes + "tb";
}
std::string csr(int64_t rows, int64_t columns, const std::vector<int32_t>& rowptr, const std::vector<int32_t>& col) {
  return "\x80\2cscipy.sparse.csr\ncsr_matrix\n)\x81}("s + text("format") + text("csr") + text("_shape") + number(rows) +
         number(columns) + "\x86" + text("indptr") + array(rowptr, "i4", {int64_t(rowptr.size())}) + text("indices") +
         array(col, "i4", {int64_t(col.size())}) + text("data") +
         array(std::vector<float>(col.size(), 1.0f), "f4", {int64_t(col.size())}) + "ub.";
}
std::string one_hot(const std::vector<int32_t>& labels, int64_t classes) {
  std::vector<int32_t> values(labels.size() * size_t(classes), 0);
  for (size_t i = 0; i < labels.size(); ++i) values[i * size_t(classes) + size_t(labels[i])] = 1;
  return "\x80\2" + array(values, "i4", {int64_t(labels.size()), classes}) + ".";
}
std::string graph(const std::vector<std::vector<int32_t>>& lists) {
  std::string out = "\x80\2ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R("s;
  for (size_t i = 0; i < lists.size(); ++i) {
    out += number(int64_t(i)) + "](";
    for (const int32_t j : lists[i]) out += number(j);
    out += "e";
  }
  return out + "u.";
}

// Case H31: 5 plain nodes, test rows 0, 1, 2 for the ids 7, 5, 9; nothing about 6 and 8 but their edges.
class MiniPlanetoid : public testing::Test {
 protected:
  void SetUp() override {
    set("allx", csr(5, 10, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4}));
    set("tx", csr(3, 10, {0, 1, 3, 4}, {7, 6, 5, 9}));
    set("x", csr(2, 10, {0, 1, 2}, {0, 1}));
    set("ally", one_hot({0, 1, 2, 0, 1}, 3));
    set("ty", one_hot({2, 1, 0}, 3));
    set("y", one_hot({0, 1}, 3));
    set("test.index", "7\n5\n9\n");
    set("graph", graph({{1, 1, 0}, {0}, {3}, {2}, {5}, {4}, {7}, {6}, {9}, {8}}));
  }
  void set(const std::string& part, const std::string& content) { put(path(part), content); }
  std::string path(const std::string& part) { return folder_ / ("ind.mini." + part); }
  std::string error() {
    return error_of<IoError>([&] { load_planetoid(folder_.path(), "mini"); });
  }
  TemporaryFolder folder_;
};

TEST_F(MiniPlanetoid, RowsArePlacedById) {
  const NodeDataset data = load_planetoid(folder_.path(), "mini");
  EXPECT_EQ(data.num_nodes, 10);
  EXPECT_EQ(data.num_features, 10);
  EXPECT_EQ(data.num_classes, 3);
  EXPECT_EQ(data.feature_rowptr.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 7, 7, 8, 8, 9}));
  EXPECT_EQ(data.feature_col.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 9}));
  EXPECT_EQ(data.labels.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 0, 1, 1, -1, 2, -1, 0}));
  EXPECT_EQ(data.splits.size(), 1u);
  EXPECT_EQ(data.splits[0].train.to_vector<int32_t>(), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(data.splits[0].valid.to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 4}));
  EXPECT_EQ(data.splits[0].test.to_vector<int32_t>(), (std::vector<int32_t>{7, 5, 9}));
  EXPECT_EQ(data.src.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(data.dst.to_vector<int32_t>(), (std::vector<int32_t>{1, 0, 3, 2, 5, 4, 7, 6, 9, 8}));
}

TEST_F(MiniPlanetoid, IdsWithCrlfAndNoFinalLineEnd) {
  set("test.index", "7\r\n5\r\n\r\n9");
  EXPECT_EQ(load_planetoid(folder_.path(), "mini").splits[0].test.to_vector<int32_t>(), (std::vector<int32_t>{7, 5, 9}));
}

TEST_F(MiniPlanetoid, WhatDoesNotFit) {
  set("test.index", "7\nfive\n9\n");
  EXPECT_EQ(error(), path("test.index") + ": line 2 is 'five', expected a node id");
  set("test.index", "7\n9999999999\n9\n");
  EXPECT_EQ(error(), path("test.index") + ": line 2 is '9999999999', expected a node id");
  set("test.index", "7\n5\n");
  EXPECT_EQ(error(), path("test.index") + ": has 2 ids but tx has 3 rows and ty 3");
  set("test.index", "7\n5\n7\n");
  EXPECT_EQ(error(), path("test.index") + ": has the id 7 twice");
  set("test.index", "7\n5\n4\n");
  EXPECT_EQ(error(), path("test.index") + ": has the id 4, expected 5 or more (allx has 5 rows)");
  set("test.index", "7\n5\n2147483647\n");
  EXPECT_EQ(error(), path("test.index") + ": the largest id is 2147483647 but the files describe 8 nodes");
  set("test.index", "7\n5\n8\n");
  EXPECT_EQ(error(), path("graph") + ": edge 10 has the node 9, expected 0 to 8");
  SetUp();
  set("ally", one_hot({0, 1, 2, 0}, 3));
  EXPECT_EQ(error(), path("allx") + ": has 5 rows but ally has 4");
  set("ally", one_hot({0, 1, 2, 0, 1}, 4));
  EXPECT_EQ(error(), path("ally") + ": has 4 classes but y has 3 and ty 3");
  set("ally", "\x80\2" + array<int32_t>({1, 0, 0, 2}, "i4", {2, 2}) + ".");
  EXPECT_EQ(error(), path("ally") + ": row 1 of the label matrix is not one-hot (column 1 holds 2)");
  set("ally", "\x80\2" + array<int32_t>({1, 0, 1, 1}, "i4", {2, 2}) + ".");
  EXPECT_EQ(error(), path("ally") + ": row 1 of the label matrix is not one-hot (column 1 holds 1)");
  set("ally", "\x80\2" + array<int32_t>({1, 0}, "i4", {2}) + ".");
  EXPECT_EQ(error(), path("ally") + ": the label matrix has 1 dimensions, expected 2");
  SetUp();
  set("tx", csr(3, 11, {0, 1, 3, 4}, {7, 6, 5, 9}));
  EXPECT_EQ(error(), path("tx") + ": has 11 columns but allx has 10");
  set("tx", csr(3, 10, {0, 1, 3, 4}, {7, 6, 10, 9}));
  EXPECT_EQ(error(), path("tx") + ": the feature matrix has the column 10 at position 2, expected 0 to 9");
  set("tx", csr(3, 10, {0, 3, 1, 4}, {7, 6, 5, 9}));
  EXPECT_EQ(error(), path("tx") + ": the feature matrix has row pointers that fall from 3 to 1 after row 1");
  set("tx", csr(3, 10, {1, 1, 3, 4}, {7, 6, 5, 9}));
  EXPECT_EQ(error(), path("tx") + ": the feature matrix has row pointers that start at 1, expected 0");
  set("tx", csr(3, 10, {0, 1, 3, 5}, {7, 6, 5, 9}));
  EXPECT_EQ(error(), path("tx") + ": the feature matrix has row pointers that end at 5 but 4 column indices");
  set("tx", csr(3, 10, {0, 4}, {7, 6, 5, 9}));
  EXPECT_EQ(error(), path("tx") + ": the feature matrix has 2 row pointers, expected 4 for 3 rows");
  set("tx", "\x80\2].");
  EXPECT_EQ(error(), path("tx") + ": holds a pickled list, expected a scipy csr_matrix");
  set("tx", "\x80\2cscipy.sparse.csr\ncsr_matrix\n)\x81}b.");
  EXPECT_EQ(error(), path("tx") + ": the csr_matrix has no _shape");
  set("tx", "\x80\2cos\nsystem\n.");
  EXPECT_EQ(error(),
            path("tx") + ": the pickle refers to 'os system' at offset 2, which is not among the names that are read");
  SetUp();
  set("graph", graph({{1, 1, 0}, {0}, {-1}}));
  EXPECT_EQ(error(), path("graph") + ": edge 4 has the node -1, expected 0 to 9");
  set("graph", "\x80\2].");
  EXPECT_EQ(error(), path("graph") + ": holds a pickled list, expected a dict from node to neighbours");
  set("graph", "\x80\2}K\1K\2s."s);
  EXPECT_EQ(error(), path("graph") + ": entry 0 of the dict is a int and a int, expected an int and a list");
  set("graph", "\x80\2}K\1]NasK\0."s);
  EXPECT_EQ(error(), path("graph") + ": 1 values are left under the result of the pickle that ends at offset 12");
  set("graph", "\x80\2}K\1]Nas."s);
  EXPECT_EQ(error(), path("graph") + ": node 1 has a none among its neighbours, expected ints");
}

TEST_F(MiniPlanetoid, MissingFiles) {
  std::filesystem::remove(path("allx"));
  std::filesystem::remove(path("graph"));
  EXPECT_EQ(error(), folder_.path() +
                         ": lacks ind.mini.allx, ind.mini.graph; a Planetoid set has ind.mini.x tx allx y ty "
                         "ally graph test.index");
}

TEST_F(MiniPlanetoid, EveryTruncationIsAnError) {
  for (const char* part : {"tx", "ty", "graph"}) {
    const std::string whole = read_file(path(part));
    for (size_t size = 0; size < whole.size(); size += 7) {
      put(path(part), whole.substr(0, size));
      EXPECT_THROW(load_planetoid(folder_.path(), "mini"), IoError) << part << " " << size;
    }
    put(path(part), whole);
  }
}

TEST_F(MiniPlanetoid, NormaliseRows) {
  NodeDataset data = load_planetoid(folder_.path(), "mini");
  const Tensor before = data.feature_values;
  normalise_rows(data);
  EXPECT_EQ(data.feature_values.to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 1, 0.5f, 0.5f, 1, 1}));
  EXPECT_EQ(before.to_vector<float>()[5], 1.0f);
  NodeDataset dense;
  dense.num_nodes = 2;
  dense.num_features = 2;
  dense.features = Tensor::from<float>({1, -3, 0, 0}, {2, 2});
  normalise_rows(dense);
  EXPECT_EQ(dense.features.to_vector<float>(), (std::vector<float>{0.25f, -0.75f, 0, 0}));
}

// The tables of the data folder's README.
struct Golden {
  const char* name;
  int64_t nodes, edges, stored, loops, features, feature_entries, classes, train, isolated, components, largest, triangles;
  int64_t entries, max_degree;
  double sum, trace, norm_rows, norm;
};

void check_stored(const std::string& path, const Golden& golden) {
  const std::string bytes = read_file(path);
  const Pickle pickle(bytes, path, {.globals = {"collections defaultdict", "__builtin__ list"}});
  int64_t stored = 0;
  std::set<int64_t> loops;  // a loop stands twice in its node's list
  for (size_t i = 0; i < pickle.root().items.size(); i += 2)
    for (const PickleValue* neighbour : pickle.root().items[i + 1]->items) {
      ++stored;
      if (neighbour->integer == pickle.root().items[i]->integer) loops.insert(neighbour->integer);
    }
  EXPECT_EQ(stored, golden.stored);
  EXPECT_EQ(int64_t(loops.size()), golden.loops);
}

void check_golden(const NodeDataset& data, const Golden& golden) {
  EXPECT_EQ(data.num_nodes, golden.nodes);
  EXPECT_EQ(data.num_features, golden.features);
  EXPECT_EQ(data.num_classes, golden.classes);
  EXPECT_EQ(split_sizes(data), (std::vector<int64_t>{golden.train, 500, 1000}));
  EXPECT_EQ(overlaps(data), 0);
  EXPECT_EQ(data.num_directed_edges(), 2 * golden.edges);
  const GraphFacts facts = graph_facts(data);
  EXPECT_EQ(facts.undirected_edges, golden.edges);
  EXPECT_EQ(facts.isolated, golden.isolated);
  EXPECT_EQ(facts.components, golden.components);
  EXPECT_EQ(facts.largest_component, golden.largest);
  EXPECT_EQ(facts.triangles, golden.triangles);
  EXPECT_EQ(facts.max_degree, golden.max_degree);
  const Normalised hat = normalised(data);
  EXPECT_EQ(hat.entries, golden.entries);
  EXPECT_NEAR(hat.sum, golden.sum, 5e-7);
  EXPECT_NEAR(hat.trace, golden.trace, 5e-7);
  EXPECT_EQ(data.sha256.size(), 64u);
  if (golden.norm == 0) return;
  EXPECT_EQ(data.feature_values.numel(), golden.feature_entries);
  for (const float value : data.feature_values.to_vector<float>()) EXPECT_EQ(value, 1.0f);
  EXPECT_NEAR(hat.norm_with_features, golden.norm, 5e-7);
  NodeDataset rows = data;
  normalise_rows(rows);
  EXPECT_NEAR(normalised(rows).norm_with_features, golden.norm_rows, 1e-6);
}

constexpr Golden kCora{"cora", 2708, 5278, 10858, 0,   1433,        49216,      7,        140,       0,
                       78,     2485, 1630, 13264, 168, 2505.339271, 745.558974, 8.067309, 129.157371};
constexpr Golden kCiteSeer{"citeseer", 3327, 4552, 9464,  124, 3703,        105165,      6,        120,       48,
                           438,        2120, 1167, 12431, 99,  3187.478256, 1195.965090, 6.973074, 217.209952};
constexpr Golden kPubMed{"pubmed", 19717, 44324, 88676,  3,   500,          0,           3, 60, 0,
                         1,        19717, 12520, 108365, 171, 16352.815390, 6693.461610, 0, 0};

TEST(Planetoid, Cora) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const NodeDataset cora = load_planetoid(data / "planetoid/cora", "cora");
  check_golden(cora, kCora);
  check_stored(data / "planetoid/cora/ind.cora.graph", kCora);
  EXPECT_EQ(std::count(cora.labels.data<int32_t>(), cora.labels.data<int32_t>() + 2708, -1), 0);
}

TEST(Planetoid, CiteSeer) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const NodeDataset citeseer = load_planetoid(data / "planetoid/citeseer", "citeseer");
  check_golden(citeseer, kCiteSeer);
  check_stored(data / "planetoid/citeseer/ind.citeseer.graph", kCiteSeer);
  // The 15 nodes that the files do not describe: no label, no features, in no split.
  std::set<int32_t> split;
  for (const Tensor& part : {citeseer.splits[0].train, citeseer.splits[0].valid, citeseer.splits[0].test})
    for (const int32_t id : part.to_vector<int32_t>()) split.insert(id);
  int64_t missing = 0;
  for (int32_t i = 0; i < 3327; ++i)
    if (citeseer.labels.data<int32_t>()[i] < 0) {
      ++missing;
      EXPECT_EQ(citeseer.feature_rowptr.data<int64_t>()[i], citeseer.feature_rowptr.data<int64_t>()[i + 1]);
      EXPECT_FALSE(split.contains(i));
      EXPECT_TRUE(i >= 2312 && i <= 3326) << i;
    }
  EXPECT_EQ(missing, 15);
}

TEST(Planetoid, PubMedWithoutItsFeatureFile) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const std::string folder = data / "planetoid/pubmed-without-allx";
  EXPECT_EQ(error_of<IoError>([&] { load_planetoid(folder, "pubmed"); }),
            folder + ": lacks ind.pubmed.allx; a Planetoid set has ind.pubmed.x tx allx y ty ally graph test.index");
}

TEST(Planetoid, PubMedWithFeaturesLeftEmpty) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(data / "planetoid/pubmed-without-allx"))
    std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), folder / entry.path().filename().string());
  put(folder / "ind.pubmed.allx", csr(18717, 500, std::vector<int32_t>(18718, 0), {}));
  check_golden(load_planetoid(folder.path(), "pubmed"), kPubMed);
  check_stored(data / "planetoid/pubmed-without-allx/ind.pubmed.graph", kPubMed);
}

}  // namespace
}  // namespace tessera
