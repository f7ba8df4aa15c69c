#include "tessera/datasets/graph/catalogue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/sha256.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/http_server.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

using test::file_answer;
using test::http;
using test::HttpServer;
using test::Request;

TEST(Catalogue, EveryFileHasOneNameAndALink) {
  std::set<std::pair<std::string, std::string>> sets;
  for (const CatalogueSet& set : node_catalogue()) {
    EXPECT_TRUE(sets.emplace(set.family, set.name).second) << set.family << "/" << set.name;
    std::set<std::string> names;
    for (const CatalogueFile& file : set.files) {
      EXPECT_TRUE(names.insert(file.name).second) << file.name;
      EXPECT_TRUE(file.url.starts_with("https://")) << file.url;
      EXPECT_EQ(file.url.substr(file.url.rfind('/')), file.name.substr(file.name.rfind('/')));
      EXPECT_TRUE(file.sha256.empty() || file.sha256.size() == 64) << file.name;
    }
  }
  EXPECT_EQ(find_in_catalogue("cora", "")->family, "planetoid");
  EXPECT_EQ(find_in_catalogue("texas", "geom-gcn")->files.size(), 12u);
  EXPECT_EQ(find_in_catalogue("karate", ""), nullptr);
}

// The checksums are those of the files as published, and every known set is in the catalogue.
TEST(Catalogue, ChecksumsAreOfTheRealFiles) {
  if (!test::have_shared_data("planetoid")) return;
  int seen = 0;
  for (const CatalogueSet& set : node_catalogue())
    for (const CatalogueFile& file : set.files) {
      const std::string path = test::shared_data() / file.name;
      if (file.sha256.empty() || !file_exists(path)) continue;
      ++seen;
      EXPECT_EQ(sha256_file(path), file.sha256) << path;
    }
  EXPECT_GT(seen, 80);
  const std::vector<std::string> known = known_node_datasets();
  for (const std::string& name : known) EXPECT_TRUE(name == "karate" || find_in_catalogue(name, "") != nullptr) << name;
}

TEST(Catalogue, WhereDataIsKept) {
  ::setenv("TESSERA_DATA", "/some/where", 1);
  EXPECT_EQ(data_folder(), "/some/where");
  ::unsetenv("TESSERA_DATA");
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(data_folder(), "/cache/tessera");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/somebody", 1);
  EXPECT_EQ(data_folder(), "/somebody/.cache/tessera");
}

class Fetching : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_download()) GTEST_SKIP() << "this build has no libcurl";
    if (!test::have_shared_data("planetoid/cora")) GTEST_SKIP();
    how_.mirror = server_.url();
    how_.download = {.tries = 2, .wait_seconds = 0.01};
    how_.say = [this](const std::string& line) { said_.push_back(line); };
  }
  std::string answer(const Request& request) {
    const std::string path = test::shared_data().string() + request.path;
    if (!file_exists(path)) return http("404 Not Found", "", "");
    return file_answer(request, read_file(path), "\"v1\"", cut_);
  }
  std::atomic<size_t> cut_ = 0;
  HttpServer server_{[this](const Request& r) { return answer(r); }};
  TemporaryFolder folder_;
  Fetch how_;
  std::vector<std::string> said_;
};

TEST_F(Fetching, ASetThatIsNotThere) {
  const NodeDataset cora = load_node_dataset("Cora", {folder_.path()}, &how_);
  EXPECT_EQ(cora.num_nodes, 2708);
  EXPECT_EQ(cora.name, "cora");
  ASSERT_EQ(said_.size(), 1u) << "every checksum is known";
  EXPECT_EQ(said_[0], "downloading planetoid/cora, 8 files, from " + server_.url() + "/planetoid/cora to " + folder_.path() +
                          "/planetoid/cora");
  EXPECT_EQ(server_.requests().size(), 8u);
  EXPECT_EQ(load_node_dataset("cora", {folder_.path()}, &how_).num_nodes, 2708);
  EXPECT_EQ(load_node_dataset("cora", folder_.path()).num_nodes, 2708);
  EXPECT_EQ(server_.requests().size(), 8u) << "it is there now";
}

TEST_F(Fetching, TheFirstFolderThatHasItIsRead) {
  const TemporaryFolder empty;
  EXPECT_EQ(load_node_dataset("cora", {empty.path(), test::shared_data().string(), folder_.path()}, &how_).num_nodes, 2708);
  EXPECT_EQ(server_.requests().size(), 0u);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{});
}

TEST_F(Fetching, AnArchiveAndTextFilesWithSplits) {
  EXPECT_EQ(load_node_dataset("heterophilous/texas", {folder_.path()}, &how_).splits.size(), 10u);
  const NodeDataset texas = load_node_dataset("geom-gcn/texas", {folder_.path()}, &how_);
  EXPECT_EQ(texas.splits.size(), 10u);
  EXPECT_TRUE(texas.sparse_features());
  const NodeDataset cora = load_node_dataset("geom-gcn/cora", {folder_.path()}, &how_);
  EXPECT_EQ(cora.splits.size(), 10u);
  EXPECT_EQ(cora.num_nodes, 2708);
}

TEST_F(Fetching, AStoppedDownloadGoesOn) {
  cut_ = 3000;
  how_.download.tries = 1;
  const std::string error = error_of<IoError>([&] { load_node_dataset("cora", {folder_.path()}, &how_); });
  const std::string place = folder_ / "planetoid/cora";
  EXPECT_TRUE(error.starts_with("the data set 'cora' is not here and was not downloaded: " + place +
                                "/ind.cora.x: cannot be downloaded from " + server_.url() + "/planetoid/cora/ind.cora.x: "))
      << error;
  EXPECT_TRUE(error.ends_with("; its files go to " + place)) << error;
  cut_ = 0;
  EXPECT_EQ(load_node_dataset("cora", {folder_.path()}, &how_).num_nodes, 2708);
  std::filesystem::remove(place + "/ind.cora.graph");
  EXPECT_EQ(load_node_dataset("cora", {folder_.path()}, &how_).num_nodes, 2708) << "one file was missing";
}

TEST_F(Fetching, ANewChecksumIsRecordedAndChecked) {
  const std::string path = folder_ / "npz/shchur/amazon_electronics_photo.npz";
  EXPECT_EQ(load_node_dataset("photo", {folder_.path()}, &how_).num_nodes, 7650);
  const std::string digest = sha256_file(path);
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_EQ(said_[1], "amazon_electronics_photo.npz: sha256 " + digest + ", recorded beside it");
  EXPECT_EQ(read_file(path + ".sha256"), digest + "  amazon_electronics_photo.npz\n");
  std::string other = read_file(path);
  other.back() = char(other.back() ^ 1);
  put(path, other);
  EXPECT_EQ(error_of<IoError>([&] { load_node_dataset("photo", folder_.path()); }),
            path + ": has the sha256 " + sha256(other) + " but " + digest +
                " was recorded when it was downloaded; remove it to download it anew");
  put(path + ".sha256", "SHA256 (of another program) = 1234\n");
  EXPECT_NO_THROW(check_recorded(path));
}

TEST_F(Fetching, NoServer) {
  how_.mirror = "http://127.0.0.1:1";
  const std::string error = error_of<IoError>([&] { load_node_dataset("polblogs", {folder_.path()}, &how_); });
  const std::string path = folder_ / "npz/nettack/polblogs.npz";
  EXPECT_TRUE(error.starts_with("the data set 'polblogs' is not here and was not downloaded: " + path +
                                ": cannot be downloaded from http://127.0.0.1:1/npz/nettack/polblogs.npz: "))
      << error;
  EXPECT_TRUE(error.ends_with("; its files go to " + path)) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_FALSE(file_exists(folder_ / "npz")) << "empty folders are left";
}

TEST_F(Fetching, UnknownNamesAreNotAskedFor) {
  EXPECT_NE(error_of<InvalidArgument>([&] { load_node_dataset("coraa", {folder_.path()}, &how_); }).find("did you mean"),
            std::string::npos);
  EXPECT_EQ(server_.requests().size(), 0u);
}

}  // namespace
}  // namespace tessera
