// tessera-data, and the downloads of the other programs, against a server of this test.

#include <gtest/gtest.h>

#include <atomic>

#include "tessera/datasets/download.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/datasets/http_server.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

constexpr const char* kProgram = "tessera-data";

std::string answer(const Request& request) {
  const std::string path = shared_data().string() + request.path;
  if (!file_exists(path)) return http("404 Not Found", "", "");
  return file_answer(request, read_file(path), "\"v1\"");
}

TEST(data, lists_what_is_known) {
  const TemporaryFolder folder;
  const Ended ended = run_program({kProgram, "list"}, {"TESSERA_DATA=" + folder.path()});
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("built in      karate                        here\n"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("planetoid     cora                          not here\n"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("downloads go to " + folder.path()), std::string::npos) << ended.output;
  EXPECT_EQ(folder.names(), std::vector<std::string>{}) << "looking makes nothing";
}

TEST(data, says_what_is_in_one) {
  const Ended ended = run_program({kProgram, "info", "karate"});
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("karate: 34 nodes, 156 directed edges, 34 features, 4 classes\n"), std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("  first     4/0/30 train/valid/test\n"), std::string::npos) << ended.output;
}

TEST(data, gets_and_trains) {
  if (!can_download()) GTEST_SKIP() << "this build has no libcurl";
  if (!have_shared_data("heterophilous/texas.npz")) return;
  HttpServer server(answer);
  const TemporaryFolder folder;
  const std::vector<std::string> environment = {"TESSERA_MIRROR=" + server.url(), "TESSERA_DATA=" + folder.path()};
  const Ended got = run_program({kProgram, "get", "heterophilous/texas", "cornell"}, environment);
  ASSERT_EQ(got.code, 0) << got.errors;
  EXPECT_EQ(got.output,
            "texas: 183 nodes, 558 directed edges, 1703 features, 5 classes\n"
            "cornell: 183 nodes, 554 directed edges, 1703 features, 5 classes\n");
  EXPECT_TRUE(got.errors.starts_with("downloading heterophilous/texas, 1 file, from " + server.url() + "/heterophilous to " +
                                     folder.path() + "/heterophilous\n"))
      << got.errors;
  EXPECT_EQ(server.requests().size(), 2u);
  const Ended again = run_program({kProgram, "get", "heterophilous/texas"}, environment);
  EXPECT_EQ(again.errors, "");
  const Ended listed = run_program({kProgram, "list"}, environment);
  EXPECT_NE(listed.output.find("heterophilous texas                         here\n"), std::string::npos) << listed.output;
  const Ended trained = run_program({"tessera-train-node", "--dataset", "wisconsin", "--epochs", "3"}, environment);
  EXPECT_EQ(trained.code, 0) << trained.errors;
  EXPECT_EQ(server.requests().size(), 3u) << "training fetches what it needs";
  const Ended offline = run_program({"tessera-train-node", "--dataset", "actor", "--offline"}, environment);
  EXPECT_EQ(offline.code, 1);
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(data, one_clear_line_without_a_network) {
  if (!can_download()) GTEST_SKIP() << "this build has no libcurl";
  const TemporaryFolder folder;
  const Ended ended = run_program({"tessera-train-node", "--dataset", "polblogs", "--data", folder.path()},
                                  {"TESSERA_MIRROR=http://127.0.0.1:1", "no_proxy=*"});
  EXPECT_EQ(ended.code, 1);
  const std::string last = ended.errors.substr(ended.errors.find('\n') + 1), path = folder / "npz/nettack/polblogs.npz";
  EXPECT_TRUE(last.starts_with("tessera-train-node: the data set 'polblogs' is not here and was not downloaded: " + path +
                               ": cannot be downloaded from http://127.0.0.1:1/npz/nettack/polblogs.npz: "))
      << ended.errors;
  EXPECT_TRUE(last.ends_with("; its files go to " + path + "\n")) << ended.errors;
  EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 2) << "what is tried, and why it did not work";
}

TEST(data, stops_at_ctrl_c_and_goes_on) {
  if (!can_download()) GTEST_SKIP() << "this build has no libcurl";
  if (!have_shared_data("heterophilous/actor.npz")) return;
  std::atomic<bool> slow = true;
  HttpServer server([&](const Request& request) {
    const std::string whole = answer(request);
    return slow ? whole.substr(0, 200000) + HttpServer::kHold : whole;
  });
  const TemporaryFolder folder;
  const std::vector<std::string> environment = {"TESSERA_MIRROR=" + server.url(), "TESSERA_DATA=" + folder.path()};
  {
    Process process({kProgram, "get", "actor"}, environment);
    const std::string part = folder / "heterophilous/actor.npz.part";
    for (int i = 0; i < 1000 && (!file_exists(part) || read_file(part).empty()); ++i) ::usleep(10000);
    process.kill(SIGINT);
    EXPECT_EQ(process.wait(), 130) << process.errors;
    EXPECT_TRUE(file_exists(part));
    EXPECT_FALSE(file_exists(folder / "heterophilous/actor.npz"));
  }
  slow = false;
  EXPECT_EQ(run_program({kProgram, "get", "actor"}, environment).code, 0);
  EXPECT_NE(server.requests().back().range, "") << "the second request is for the rest";
}

TEST(data, refuses_with_one_line) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {kProgram};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ended ended = run_program(all);
    EXPECT_EQ(ended.code, 2);
    return ended.errors;
  };
  EXPECT_EQ(refused({"get"}), "tessera-data: get needs the name of a data set (see --help)\n");
  EXPECT_EQ(refused({"list", "cora"}), "tessera-data: list takes no name (see --help)\n");
  EXPECT_NE(refused({"gte"}).find("did you mean 'get'?"), std::string::npos);
  EXPECT_NE(refused({"info", "coraa", "--offline"}).find("did you mean 'cora'?"), std::string::npos);
}

TEST(data, help_teaches) {
  const Ended ended = run_program({kProgram, "--help"});
  EXPECT_EQ(ended.code, 0);
  for (const char* text : {"Usage: tessera-data VERB [NAME ...] [options]", "Examples:", "--data", "Exit codes:"})
    EXPECT_NE(ended.output.find(text), std::string::npos) << text << "\n" << ended.output;
}

}  // namespace
}  // namespace tessera::test
