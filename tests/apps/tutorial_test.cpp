// docs/tutorials/own-graph.md: all its commands, in order, in an empty folder.

#include <gtest/gtest.h>

#include <sstream>

#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera::test {
namespace {

/// The fenced `sh` blocks of a page as one script.
std::string script_of(const std::string& page) {
  std::istringstream in(page);
  std::string script;
  bool shell = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```"))
      shell = line == "```sh";
    else if (shell)
      script += line + "\n";
  }
  return script;
}

size_t lines_of(const std::string& text) { return size_t(std::count(text.begin(), text.end(), '\n')); }

TEST(tutorial, own_graph) {
  const TemporaryFolder folder;
  const std::string script = script_of(read_file(TESSERA_SOURCE_DIR "/docs/tutorials/own-graph.md"));
  ASSERT_GT(lines_of(script), 10u);
  const Ended ended =
      run_program({"/bin/sh", "-c", "set -eu; PATH=\"" + programs() + ":$PATH\"; cd '" + folder.path() + "'\n" + script});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("edges: 300 nodes, "), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("162/54/54 train/valid/test"), std::string::npos) << ended.output;

  EXPECT_NE(read_file(folder / "clubs.html").find("theatre"), std::string::npos);
  const auto result = json_of(folder / "clubs.json")["result"];
  EXPECT_GT(result["test"]["mean"], 0.85) << "the graph says much more than the two numbers";
  const std::string predictions = read_file(folder / "predictions.csv");
  EXPECT_TRUE(predictions.starts_with("node,class,p_chess,p_rowing,p_theatre\nperson-0,")) << predictions.substr(0, 100);
  EXPECT_EQ(lines_of(predictions), 301u);
  std::istringstream guesses(read_file(folder / "guesses.txt"));
  int right = 0, count = 0;
  for (std::string person, club; guesses >> person >> club; ++count) {
    const char* const clubs[] = {"chess", "rowing", "theatre"};
    right += club == clubs[std::stoi(person.substr(7)) % 3];
  }
  EXPECT_EQ(count, 30);
  EXPECT_GE(right, 24);
}

}  // namespace
}  // namespace tessera::test
