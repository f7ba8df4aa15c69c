// An op is complete when `git ls-files '*name*'` shows all of it.

#include <gtest/gtest.h>

#include "tessera/tests/repo/tree.h"

namespace repo {
namespace {

/// The op that the kernel file R/X_cpu.cpp belongs to: R/X, or where a long one is split by subject into R/X_cpu.cpp and
/// R/X_SUBJECT_cpu.cpp, still R/X.
std::string op_of(const std::string& kernel_path) {
  const std::string own = kernel_path.substr(0, kernel_path.size() - 8);
  if (exists(own + ".h")) return own;
  const size_t cut = own.rfind('_');
  const std::string whole = own.substr(0, cut);
  return cut != std::string::npos && exists(whole + "_cpu.cpp") ? whole : own;
}

TEST(OpFiles, EveryKernelHasItsSet) {
  int kernels = 0;
  std::string missing;
  const auto need = [&](const SourceFile& kernel, const std::string& part) {
    if (!exists(part)) missing += kernel.path + " has no " + part + "\n";
  };
  for (const SourceFile& file : files()) {
    if (room_index(file.top()) < 0 || !file.path.ends_with("_cpu.cpp")) continue;
    ++kernels;
    const std::string op = op_of(file.path);
    need(file, op + ".h");
    need(file, op + ".cpp");
    need(file, op + "_kernels.h");
    need(file, "tests/" + op + "_test.cpp");
    const bool shared = (file.top() == "core" && exists("bench/core/ops_bench.cpp")) ||
                        (file.top() == "scatter" && exists("bench/scatter/scatter_bench.cpp"));
    if (!shared) need(file, "bench/" + op + "_bench.cpp");
  }
  EXPECT_TRUE(missing.empty())
      << missing
      << "The rule: R/X_cpu.cpp goes with R/X.h, R/X.cpp, R/X_kernels.h, tests/R/X_test.cpp and "
         "bench/R/X_bench.cpp, where the ops of core may share bench/core/ops_bench.cpp and those of "
         "scatter bench/scatter/scatter_bench.cpp. The kernels of a long X may be split into "
         "X_cpu.cpp and X_SUBJECT_cpu.cpp.";
  EXPECT_GT(kernels, 0) << "no *_cpu.cpp was found: the check looks in the wrong place";
}

}  // namespace
}  // namespace repo
