#include "tessera/datasets/graph/find.h"

#include <gtest/gtest.h>

#include "tessera/core/error.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

TEST(FindNodeDataset, Karate) {
  EXPECT_EQ(load_node_dataset("karate", "").num_nodes, 34);
  EXPECT_EQ(load_node_dataset("KarateClub", "/nowhere").num_nodes, 34);
}

TEST(FindNodeDataset, InEveryPlace) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  EXPECT_EQ(load_node_dataset("cora", data).num_nodes, 2708);
  EXPECT_EQ(load_node_dataset("Cora", data).name, "cora");
  EXPECT_EQ(load_node_dataset("planetoid/CiteSeer", data).num_nodes, 3327);
  EXPECT_EQ(load_node_dataset("cora", data / "planetoid").num_nodes, 2708);
  EXPECT_EQ(load_node_dataset("cora", data / "planetoid/cora").num_nodes, 2708);
  const TemporaryFolder pyg;
  std::filesystem::create_directories(pyg / "Cora");
  std::filesystem::create_symlink(std::filesystem::absolute(data / "planetoid/cora"), pyg / "Cora/raw");
  EXPECT_EQ(load_node_dataset("Cora", pyg.path()).num_nodes, 2708);
  EXPECT_EQ(error_of<IoError>([&] { load_node_dataset("pubmed", data); }),
            (data / "planetoid/pubmed-without-allx").string() +
                ": lacks ind.pubmed.allx; a Planetoid set has ind.pubmed.x tx allx y ty ally graph test.index");
}

TEST(FindNodeDataset, WhatIsNotThere) {
  const TemporaryFolder folder;
  const std::string& d = folder.path();
  EXPECT_EQ(error_of<IoError>([&] { load_node_dataset("cora", d); }),
            d + ": the data set 'cora' is not there; looked for it as " + d + ", " + d + "/cora, " + d + "/cora/raw, " + d +
                "/planetoid/cora");
}

TEST(FindNodeDataset, UnknownNames) {
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset("coar", "/nowhere"); }),
            "the data set 'coar' is not known, did you mean 'cora'? Known are citeseer, cora, karate, pubmed");
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset("something\nelse", "/nowhere"); }),
            "the data set 'something\\x0aelse' is not known; known are citeseer, cora, karate, pubmed");
}

}  // namespace
}  // namespace tessera
