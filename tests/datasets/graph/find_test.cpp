#include "tessera/datasets/graph/find.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/core/error.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

const std::string kList =
    "actor, amazon_electronics_computers, amazon_electronics_photo, amazon_ratings, chameleon, chameleon_directed, "
    "chameleon_filtered, citeseer, cora, cora_ml, cornell, film, karate, minesweeper, ms_academic_cs, ms_academic_phy, "
    "polblogs, "
    "pubmed, questions, roman_empire, squirrel, squirrel_filtered, texas, tolokers, wisconsin";

TEST(FindNodeDataset, Karate) {
  EXPECT_EQ(load_node_dataset("karate", "").num_nodes, 34);
  EXPECT_EQ(load_node_dataset("KarateClub", "/nowhere").num_nodes, 34);
}

TEST(FindNodeDataset, InEveryPlace) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  EXPECT_EQ(load_node_dataset("cora", data).num_nodes, 2708);
  EXPECT_EQ(load_node_dataset("Cora", data).name, "cora");
  EXPECT_EQ(load_node_dataset("cora", data).splits.size(), 1u);
  EXPECT_EQ(load_node_dataset("planetoid/CiteSeer", data).num_nodes, 3327);
  EXPECT_EQ(load_node_dataset("cora", data / "planetoid").num_nodes, 2708);
  EXPECT_EQ(load_node_dataset("cora", data / "planetoid/cora").num_nodes, 2708);
  EXPECT_EQ(load_node_dataset("citeseer", data / "npz/gnn-benchmark").num_nodes, 3312);
  EXPECT_EQ(load_node_dataset("cora", data / "npz/gnn-benchmark/cora.npz").splits.size(), 0u);
  EXPECT_EQ(load_node_dataset("gnn-benchmark/cora", data).splits.size(), 0u);
  EXPECT_EQ(load_node_dataset("photo", data).name, "amazon_electronics_photo");
  EXPECT_EQ(load_node_dataset("cora_ml", data).num_nodes, 2995);
  EXPECT_EQ(load_node_dataset("minesweeper", data).num_nodes, 10000);
  EXPECT_FALSE(load_node_dataset("texas", data).sparse_features());
  EXPECT_TRUE(load_node_dataset("geom-gcn/texas", data).sparse_features());
  EXPECT_TRUE(load_node_dataset("texas", data / "geom-gcn").sparse_features());
  EXPECT_TRUE(load_node_dataset("texas", data / "geom-gcn/texas").sparse_features());
  EXPECT_EQ(load_node_dataset("geom-gcn/cora", data).splits.size(), 10u);
  const NodeDataset citeseer = load_node_dataset("geom-gcn/citeseer", data);
  for (size_t i = 0; i < citeseer.splits.size(); ++i) {
    const NodeSplit& split = citeseer.splits[i];
    // As published, splits 4 and 5 are of the largest component; 15 and 10 of the nodes have no label.
    EXPECT_EQ(split.train.numel() + split.valid.numel() + split.test.numel(), i == 4 || i == 5 ? 2120 - 10 : 3327 - 15) << i;
    for (const Tensor& part : {split.train, split.valid, split.test})
      for (const int32_t node : part.span<int32_t>()) EXPECT_GE(citeseer.labels.data<int32_t>()[node], 0);
  }
  EXPECT_EQ(load_node_dataset(data / "heterophilous/texas.npz", "").name, "texas");
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
  EXPECT_EQ(error_of<IoError>([&] { load_node_dataset("polblogs", d); }),
            d + ": the data set 'polblogs' is not there; looked for it as " + d + ", " + d + "/polblogs, " + d +
                "/polblogs/raw, " + d + "/polblogs.npz, " + d + "/npz/nettack/polblogs.npz");
  EXPECT_EQ(error_of<IoError>([&] { load_node_dataset("heterophilous/texas", d); }),
            d + ": the data set 'heterophilous/texas' is not there; looked for it as " + d + "/heterophilous/texas.npz");
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset("cora", ""); }),
            "the data set 'cora' is read from files, but no data folder is given");
}

TEST(FindNodeDataset, AKnownNameIsNotTakenForAnotherSet) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  for (const std::string place : {data / "geom-gcn/cornell", data / "heterophilous/cornell.npz"})
    EXPECT_EQ(error_of<IoError>([&] {
                load_node_dataset("texas", place);
              }).rfind(place + ": the data set 'texas' is not there", 0),
              0u);
}

TEST(FindNodeDataset, UnknownNames) {
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset("coar", "/nowhere"); }),
            "the data set 'coar' is not known, did you mean 'cora'? Known are " + kList);
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset("something\nelse", ""); }),
            "the data set 'something\\x0aelse' is not known; known are " + kList);
}

TEST(FindNodeDataset, AnUnknownNameIsNotTakenForWhateverLiesThere) {
  const TemporaryFolder folder;
  const std::string own = folder / "own";
  std::filesystem::create_directory(own);
  put(own + "/edges.csv", "a,b\nb,c\n");
  for (const char* asked : {"own", "Own"})
    for (const std::string& place : {folder.path(), own, own + "/"}) {
      const NodeDataset data = load_node_dataset(asked, place);
      EXPECT_EQ(data.num_nodes, 3) << asked << " in " << place;
      EXPECT_EQ(data.name, "own");
    }
  EXPECT_EQ(load_node_dataset(own, "").name, "own");
  EXPECT_EQ(load_node_dataset(own + "/", "/nowhere").num_nodes, 3);
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset("coar", own); }),
            "the data set 'coar' is not known, did you mean 'cora'? Known are " + kList);
  EXPECT_EQ(error_of<InvalidArgument>([&] { load_node_dataset(folder / "nothing", own); }).find("the data set '"), 0u);
  EXPECT_EQ(
      error_of<IoError>([&] { load_node_dataset(folder / "own/..", ""); }),
      folder / "own/.." + ": is neither an .npz file nor a folder with edges.csv and nodes.csv or the files of a known set");
}

}  // namespace
}  // namespace tessera
