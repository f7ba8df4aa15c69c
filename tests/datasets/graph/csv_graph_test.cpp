#include "tessera/datasets/graph/csv_graph.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/core/error.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/tests/core/io/make_zip.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

using Ids = std::vector<int32_t>;

class CsvGraphTest : public testing::Test {
 protected:
  CsvGraph load(const std::string& edges, const std::string& nodes, const CsvGraphOptions& options = {}) {
    put(edges_, edges);
    put(nodes_, nodes);
    return load_csv_graph(edges_, nodes.empty() ? "" : nodes_, options);
  }
  std::string error(const std::string& edges, const std::string& nodes, const CsvGraphOptions& options = {}) {
    return error_of<IoError>([&] { load(edges, nodes, options); }).substr(folder_.path().size() + 1);
  }
  TemporaryFolder folder_;
  std::string edges_ = folder_ / "edges.csv", nodes_ = folder_ / "nodes.csv";
};

TEST_F(CsvGraphTest, WithHeaders) {
  const CsvGraph graph =
      load("source,target,weight\nb,a,0.5\na,c,1\nc,c,1\n",
           "id,height,label,split,width\na,1,spam,train,-2\nb,2.5,ham,test,3\nc,3,,valid,1e-3\nd,4,ham,,0\n");
  EXPECT_EQ(graph.node_ids, (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(graph.class_names, (std::vector<std::string>{"ham", "spam"}));
  EXPECT_EQ(graph.feature_names, (std::vector<std::string>{"height", "width"}));
  EXPECT_EQ(graph.data.features.shape(), (Shape{4, 2}));
  EXPECT_EQ(graph.data.features.to_vector<float>(), (std::vector<float>{1, -2, 2.5f, 3, 3, 1e-3f, 4, 0}));
  EXPECT_EQ(graph.data.labels.to_vector<int32_t>(), (Ids{1, 0, -1, 0}));
  EXPECT_EQ(graph.data.num_classes, 2);
  EXPECT_EQ(graph.data.src.to_vector<int32_t>(), (Ids{0, 0, 1, 2}));
  EXPECT_EQ(graph.data.dst.to_vector<int32_t>(), (Ids{1, 2, 0, 0}));
  ASSERT_EQ(graph.data.splits.size(), 1u);
  EXPECT_EQ(graph.data.splits[0].train.to_vector<int32_t>(), (Ids{0}));
  EXPECT_EQ(graph.data.splits[0].valid.to_vector<int32_t>(), (Ids{2}));
  EXPECT_EQ(graph.data.splits[0].test.to_vector<int32_t>(), (Ids{1}));
}

TEST_F(CsvGraphTest, WithoutHeadersInEveryDelimiter) {
  for (const char delimiter : {',', ';', '\t', ' '}) {
    std::string edges = "7,30\r\n30,4", nodes = "30,1,0.5,10\r\n4,2,1.5,9\r\n7,3,2.5,10";
    for (std::string* text : {&edges, &nodes}) std::replace(text->begin(), text->end(), ',', delimiter);
    for (const bool gz : {false, true}) {
      const CsvGraph graph = gz ? load(make_gzip(edges), make_gzip(nodes)) : load(edges, nodes);
      EXPECT_EQ(graph.node_ids, (std::vector<std::string>{"30", "4", "7"}));
      EXPECT_EQ(graph.class_names, (std::vector<std::string>{"9", "10"})) << "by value, not by letters";
      EXPECT_EQ(graph.data.labels.to_vector<int32_t>(), (Ids{1, 0, 1}));
      EXPECT_EQ(graph.data.features.to_vector<float>(), (std::vector<float>{1, 0.5f, 2, 1.5f, 3, 2.5f}));
      EXPECT_EQ(graph.data.num_directed_edges(), 4);
      EXPECT_TRUE(graph.data.splits.empty());
    }
  }
}

// Case H34.
TEST_F(CsvGraphTest, NamesWithTheCommentSign) {
  const std::string plain = "a#1 b\n# real comment\nc d#2\n\ne f";
  std::string crlf, tabs = plain;
  for (const char c : plain) crlf.append(c == '\n' ? "\r\n" : std::string(1, c));
  std::replace(tabs.begin(), tabs.end(), ' ', '\t');
  for (const std::string& text :
       {plain, crlf, "\xef\xbb\xbf" + plain, std::string("# x\ta\n") + tabs.substr(0, 6) + "c\td#2\n\ne\tf"}) {
    const CsvGraph graph = load(text, "");
    EXPECT_EQ(graph.node_ids, (std::vector<std::string>{"a#1", "b", "c", "d#2", "e", "f"})) << text;
    EXPECT_EQ(graph.data.num_directed_edges(), 6);
    EXPECT_EQ(graph.data.num_features, 0);
    EXPECT_EQ(graph.data.num_classes, 0);
  }
  EXPECT_EQ(error("a b\nc\n", ""), "edges.csv: line 2 has one field, expected the two ends of an edge");
}

// Case H38, and names of any letters.
TEST_F(CsvGraphTest, IdsAreText) {
  const CsvGraph graph =
      load("0012,12\n1e5,NA\nПример,切片 1\n", "id,x\n12,0\n0012,1\n1e5,2\nNA,3\nПример,4\n切片 1,5\n100000,6\n");
  EXPECT_EQ(graph.data.num_nodes, 7);
  EXPECT_EQ(graph.data.src.to_vector<int32_t>(), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(graph.data.dst.to_vector<int32_t>(), (Ids{1, 0, 3, 2, 5, 4}));
}

TEST_F(CsvGraphTest, ColumnsByName) {
  const CsvGraph graph = load("a,b\n", "kind,paper,size,fold\nx,a,1,test\ny,b,2,train\n",
                              {.id_column = "paper", .label_column = "kind", .split_column = "fold"});
  EXPECT_EQ(graph.node_ids, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(graph.class_names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(graph.feature_names, (std::vector<std::string>{"size"}));
  EXPECT_EQ(graph.data.splits[0].test.to_vector<int32_t>(), (Ids{0}));
  EXPECT_EQ(error("a,b\n", "id,x\na,1\nb,2\n", {.label_column = "kind"}), "nodes.csv: has no column 'kind', only id, x");
  EXPECT_EQ(error("a,b\n", "a,1,0\nb,2,1\n", {.label_column = "kind"}), "nodes.csv: has no header, so no column 'kind'");
}

TEST_F(CsvGraphTest, HeaderAsSaid) {
  EXPECT_EQ(load("x,y\na,b\n", "id,f\na,1\nb,2\n", {.edge_header = CsvHeader::yes}).data.num_directed_edges(), 2);
  EXPECT_EQ(
      load("from,to\na,b\n", "from,1,0\nto,2,0\na,3,1\nb,4,1\n", {.edge_header = CsvHeader::no}).data.num_directed_edges(),
      4);
  EXPECT_EQ(load("a,b\n", "1,2,3\na,1,0\nb,2,0\n", {.node_header = CsvHeader::yes}).feature_names,
            (std::vector<std::string>{"2", "3"}));
}

TEST_F(CsvGraphTest, Errors) {
  const std::string nodes = "id,x,label\na,1,0\nb,2,1\n";
  EXPECT_EQ(error("a,c\n", nodes),
            "edges.csv: line 1 has the node 'c', which " + nodes_ + " does not have (if the line is a header, say so)");
  EXPECT_EQ(error("a,b\nb,c\n", nodes), "edges.csv: line 2 has the node 'c', which " + nodes_ + " does not have");
  EXPECT_EQ(error("a,\n", nodes), "edges.csv: line 1 has an empty node id");
  EXPECT_EQ(error("a,b\n", nodes + "a,3,1\n"), "nodes.csv: lines 2 and 4 are both of node 'a'");
  EXPECT_EQ(error("a,b\n", nodes + ",3,1\n"), "nodes.csv: line 4 has an empty node id");
  EXPECT_EQ(error("a,b\n", nodes + "c,x,1\n"), "nodes.csv: line 4 has 'x' in column 2, expected a finite number");
  EXPECT_EQ(error("a,b\n", nodes + "c,nan,1\n"), "nodes.csv: line 4 has 'nan' in column 2, expected a finite number");
  EXPECT_EQ(error("a,b\n", nodes + "c,1e300,1\n"), "nodes.csv: line 4 has '1e300' in column 2, expected a finite number");
  EXPECT_EQ(error("a,b\n", nodes + "c,3,NaN\n"),
            "nodes.csv: line 4 has the label 'NaN', expected a class, or nothing for a node without");
  EXPECT_EQ(error("a,b\n", nodes + "c,3\n"), "nodes.csv: line 4 has 2 fields, expected 3 as before");
  EXPECT_EQ(error("a,b\n", "id,x,split\na,1,dev\n"),
            "nodes.csv: line 2 has the split 'dev', expected train, valid, test or nothing");
  EXPECT_EQ(error_of<IoError>([&] { load_csv_graph(folder_ / "none.csv", ""); }),
            (folder_ / "none.csv") + ": cannot be opened: No such file or directory");
}

TEST_F(CsvGraphTest, FoundAsAFolder) {
  std::filesystem::create_directory(folder_ / "mine");
  put(folder_ / "mine/edges.tsv", "a\tb\n");
  put(folder_ / "mine/nodes.tsv", "id\tx\na\t1\nb\t2\n");
  EXPECT_EQ(load_node_dataset("mine", folder_.path()).name, "mine");
  EXPECT_EQ(load_node_dataset("mine", folder_ / "mine").num_features, 1);
  EXPECT_THROW(load_node_dataset("any", folder_ / "mine"), InvalidArgument);
}

}  // namespace
}  // namespace tessera
