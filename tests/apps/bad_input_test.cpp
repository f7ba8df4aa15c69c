// Whatever a file holds, a program ends with one line and exit code 1 or 2, and leaves nothing behind.

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/core/io/npy.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrain = "tessera-train-node";

/// The error line after the program's name.
std::string refused(const std::vector<std::string>& arguments) {
  const Ended ended = run_program(arguments);
  EXPECT_TRUE(ended.code == 1 || ended.code == 2) << ended.code << ": " << ended.errors;
  EXPECT_EQ(ended.output, "");
  EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
  const std::string start = arguments[0] + ": ";
  EXPECT_TRUE(ended.errors.starts_with(start)) << ended.errors;
  return ended.errors.substr(std::min(start.size(), ended.errors.size()));
}

class BadInput : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(out_); }
  void TearDown() override { EXPECT_TRUE(fs::is_empty(out_)) << "something half-written was left"; }

  std::string train_csv(const std::string& edges, const std::string& nodes) {
    put(folder_ / "edges.csv", edges);
    put(folder_ / "nodes.csv", nodes);
    return refused({kTrain, "--edges", folder_ / "edges.csv", "--nodes", folder_ / "nodes.csv", "--json", out_ + "/r.json",
                    "--report", out_ + "/r.html", "--save", out_ + "/w.safetensors"});
  }
  std::string train_file(const std::string& path) {
    return refused({kTrain, "--dataset", "own", "--data", path, "--json", out_ + "/r.json", "--save", out_ + "/w"});
  }

  TemporaryFolder folder_;
  const std::string out_ = folder_ / "out";
};

TEST_F(BadInput, TablesOfText) {
  const std::string e = folder_ / "edges.csv", n = folder_ / "nodes.csv";
  const std::string good = "id,x,label\na,1,0\nb,2,1\nc,3,0\n";
  EXPECT_EQ(train_csv("a,b\nb\n", good), e + ": line 2 has one field, expected the two ends of an edge\n");
  EXPECT_NE(train_csv("a,b\nb,z\n", good).find(e + ": line 2 has the node 'z', which"), std::string::npos);
  EXPECT_NE(train_csv("a,b\n", "id,x,label\na,1,nan\nb,2,1\n").find("nan"), std::string::npos);
  EXPECT_NE(train_csv("a,b\n", "id,x,label\na,one,0\nb,2,1\n").find("expected a finite number"), std::string::npos);
  EXPECT_NE(train_csv("a,b\n", "id,x,label\na,inf,0\nb,2,1\n").find("expected a finite number"), std::string::npos);
  EXPECT_NE(train_csv("a,b\n", "id,x,label\na,1\nb,2,1\n").find(n + ": line 2"), std::string::npos);
  EXPECT_NE(train_csv("a,b\n", "id,x,label\na,1,0\na,2,1\n").find("'a'"), std::string::npos);
  EXPECT_NE(train_csv("a,b\n", "").find(n), std::string::npos);
  EXPECT_NE(train_csv("", good), "");
  EXPECT_NE(train_csv(std::string("a,b\nb,\0c\n", 10), good).find("zero byte"), std::string::npos);
  EXPECT_NE(train_csv("a,b\nb,\x1b[31m\nx\n", good).find("\\x1b[31m"), std::string::npos)
      << "no escape codes reach a terminal";
}

TEST_F(BadInput, Archives) {
  if (!have_shared_data("npz/gnn-benchmark/cora.npz")) return;
  const std::string whole = read_file(shared_data() / "npz/gnn-benchmark/cora.npz"), own = folder_ / "own.npz";
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    put(own, whole.substr(0, size));
    EXPECT_TRUE(train_file(own).starts_with(own + ": ")) << size;
  }
  EXPECT_NE(train_file(folder_ / "none.npz"), "");
}

TEST_F(BadInput, EveryMalformedFileThroughEveryReader) {
  if (!have_shared_data("malformed")) return;
  int seen = 0;
  for (const char* family : {"malformed", "odd"})
    for (const auto& entry : fs::recursive_directory_iterator(shared_data() / family)) {
      if (!entry.is_regular_file() || entry.file_size() > 2'000'000) continue;
      const std::string path = entry.path().string();
      SCOPED_TRACE(path);
      ++seen;
      fs::remove(folder_ / "own.npz");
      fs::create_symlink(fs::absolute(path), folder_ / "own.npz");
      for (const std::vector<std::string>& arguments :
           {std::vector<std::string>{kTrain, "--dataset", "own", "--data", folder_ / "own.npz", "--epochs", "1"},
            {kTrain, "--edges", path, "--epochs", "1"},
            {"tessera-predict", "--weights", path, "--out", out_ + "/p.csv"}}) {
        const Ended ended = run_program(arguments);
        EXPECT_TRUE(ended.code == 0 || ended.code == 1 || ended.code == 2) << ended.code << ": " << ended.errors;
        EXPECT_TRUE(ended.code == 0 || std::count(ended.errors.begin(), ended.errors.end(), '\n') == 1) << ended.errors;
      }
    }
  EXPECT_GT(seen, 50);
}

TEST_F(BadInput, ANameThatBreaksTheLine) {
  const std::string odd = folder_ / "two\nlines.csv";
  EXPECT_EQ(refused({kTrain, "--edges", odd}),
            (folder_ / "two\\x0alines.csv") + ": cannot be opened: No such file or directory\n");
}

}  // namespace
}  // namespace tessera::test
