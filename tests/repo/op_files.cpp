// An op is complete when `git ls-files '*name*'` shows all of it.

#include <gtest/gtest.h>

#include "tessera/tests/repo/tree.h"

namespace repo {
namespace {

TEST(op_files, every_kernel_has_its_set) {
  constexpr const char* kRule =
      "; the rule: R/X_cpu.cpp goes with R/X.h, R/X.cpp, R/X_kernels.h, tests/R/X_test.cpp and bench/R/X_bench.cpp, "
      "where ops of core may share bench/core/ops_bench.cpp";
  int seen = 0;
  for (const SourceFile& file : files()) {
    if (room_index(file.top()) < 0 || !file.path.ends_with("_cpu.cpp")) continue;
    ++seen;
    const std::string op = file.path.substr(0, file.path.size() - 8);
    for (const std::string& part : {op + ".h", op + ".cpp", op + "_kernels.h", "tests/" + op + "_test.cpp"})
      if (!exists(part)) ADD_FAILURE() << file.path << " has no " << part << kRule;
    const bool shared_bench = file.top() == "core" && exists("bench/core/ops_bench.cpp");
    if (!shared_bench && !exists("bench/" + op + "_bench.cpp"))
      ADD_FAILURE() << file.path << " has no bench/" << op << "_bench.cpp" << kRule;
  }
  EXPECT_GT(seen, 0) << "no *_cpu.cpp was found: the check looks in the wrong place";
}

}  // namespace
}  // namespace repo
