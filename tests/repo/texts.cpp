// Sizes, READMEs, folders, and paths of one machine.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "tessera/tests/repo/tree.h"

namespace repo {
namespace {

constexpr int64_t kMostLines = 500;
constexpr int64_t kManyLines = 400;
constexpr int64_t kPage = 70;
constexpr int kMostFiles = 80;  // some forty pairs of .h and .cpp

TEST(Texts, CppFilesHoldOneIdea) {
  for (const SourceFile& file : files()) {
    if (!file.is_cpp()) continue;
    EXPECT_LE(file.lines(), kMostLines) << file.path << ": split it by subject";
    if (file.lines() > kManyLines && file.lines() <= kMostLines)
      std::cout << "note: " << file.path << " has " << file.lines() << " lines, " << kMostLines << " are the limit\n";
  }
}

/// tests/core/ops mirrors core/ops, whose README speaks for both.
bool is_mirror(const std::string& folder) {
  for (const char* tree : {"tests/", "bench/"})
    if (folder.starts_with(tree) && room_index(folder.substr(6, folder.find('/', 6) - 6)) >= 0) return true;
  return false;
}

TEST(Texts, EveryFolderHasAReadmeOfOnePage) {
  std::set<std::string> folders;
  for (const SourceFile& file : files())
    if (file.is_cpp() || file.path.ends_with(".py") || file.path.ends_with(".cmake")) folders.insert(file.folder());
  for (const char* whole_projects : {"tests/consumer/project"}) folders.erase(whole_projects);
  for (const std::string& folder : folders) {
    if (!is_mirror(folder) && !exists(folder + "/README.md"))
      ADD_FAILURE() << folder << "/ has no README.md: purpose, allowed includes, the files, how to add one more";
  }
  for (const SourceFile& file : files())
    if (file.name() == "README.md" && !file.folder().empty()) {
      EXPECT_LE(file.lines(), kPage) << file.path << ": a page is " << kPage << " lines";
    }
}

/// The targets of `[text](target)`, without anchors; links to other sites are not followed.
TEST(Texts, LinksLeadSomewhere) {
  for (const SourceFile& file : files()) {
    if (!file.path.ends_with(".md")) continue;
    for (size_t at = file.text.find("]("); at != std::string::npos; at = file.text.find("](", at + 1)) {
      const std::string link = file.text.substr(at + 2, file.text.find(')', at) - at - 2);
      const std::string target = link.substr(0, link.find('#'));
      if (target.empty() || target.find(':') != std::string::npos || target.find_first_of(" \n[{&") != std::string::npos)
        continue;
      if (!exists(file.folder().empty() ? target : file.folder() + "/" + target))
        ADD_FAILURE() << file.path << ": the link to " << target << " leads nowhere";
    }
  }
}

TEST(Texts, FoldersAreNamedForASubject) {
  const std::set<std::string> vague = {"src", "include", "detail", "details", "util", "utils", "common", "misc", "helpers"};
  std::map<std::string, int> counts;
  for (const SourceFile& file : files()) {
    const std::string folder = file.folder();
    EXPECT_FALSE(vague.contains(folder.substr(folder.rfind('/') + 1))) << file.path << ": name the folder for its subject";
    if (file.is_cpp()) ++counts[folder];
  }
  for (const auto& [folder, count] : counts)
    EXPECT_LE(count, kMostFiles) << folder << " holds " << count << " files: give it sub-rooms by subject";
}

TEST(Texts, NameNoPathOfOneMachine) {
  // Cut in two so that this file does not name them either.
  const std::string foreign[] = {
      "/wo"
      "rk/",
      "/ro"
      "ot/",
      "/ho"
      "me/",
      "/fa"
      "rm/",
      "/tm"
      "p/bash"};
  for (const SourceFile& file : files())
    for (const std::string& path : foreign) {
      const size_t at = file.text.find(path);
      if (at == std::string::npos) continue;
      const int64_t line = 1 + std::count(file.text.begin(), file.text.begin() + int64_t(at), '\n');
      ADD_FAILURE() << file.path << ":" << line << ": " << path << "... exists on one machine only";
    }
}

}  // namespace
}  // namespace repo
