// Who may include what.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tessera/tests/repo/tree.h"

namespace repo {
namespace {

std::string where(const SourceFile& file, const Include& include) {
  return file.path + ":" + std::to_string(include.line) + ": ";
}

/// "tessera/sparse/spmm.h" -> "sparse/spmm.h"; empty for anything else.
std::string in_tree(const Include& include) {
  return include.target.starts_with("tessera/") ? include.target.substr(8) : std::string();
}

TEST(Includes, AreSpelledFromTessera) {
  for (const SourceFile& file : files()) {
    if (!file.is_cpp()) continue;
    for (const Include& include : includes_of(file)) {
      const std::string path = in_tree(include);
      if (!include.quoted && !path.empty())
        ADD_FAILURE() << where(file, include) << "write \"" << include.target << "\", not <...>";
      else if (include.quoted && path.empty())
        ADD_FAILURE() << where(file, include) << "\"" << include.target
                      << "\" needs to be spelled \"tessera/<room>/<file>\"; headers of other libraries stand in <...>";
      else if (include.quoted && !exists(path))
        ADD_FAILURE() << where(file, include) << "there is no " << path;
    }
  }
}

TEST(Includes, FollowTheOrderOfTheDoors) {
  for (const SourceFile& file : files()) {
    const int room = room_index(file.top());
    if (!file.is_cpp() || room < 0) continue;
    for (const Include& include : includes_of(file)) {
      const std::string path = in_tree(include);
      if (path.empty()) continue;
      const int other = room_index(path.substr(0, path.find('/')));
      if (other < 0 || other > room)
        ADD_FAILURE()
            << where(file, include) << file.top() << " may not include " << path
            << "; a room includes only itself and rooms to its left: core scatter sparse layers sampling datasets apps";
    }
  }
}

/// Headers that bring no inline function of the standard library: nothing in them is emitted as a weak function, of which
/// the linker could choose the copy with AVX for code that must run on an older CPU.
bool is_safe_in_kernels(const std::string& target) {
  static const char* const safe[] = {"cstdint", "cstddef", "climits", "cfloat", "immintrin.h"};
  return std::find(std::begin(safe), std::end(safe), target) != std::end(safe) || target.starts_with("hwy/");
}

/// What kernel files reach that is not safe, each with the chain of headers that leads there.
void follow(const std::string& path, const std::string& chain, std::set<std::string>& seen,
            std::vector<std::string>& unsafe) {
  if (!seen.insert(path).second) return;
  for (const SourceFile& file : files()) {
    if (file.path != path) continue;
    for (const Include& include : includes_of(file)) {
      if (const std::string next = in_tree(include); !next.empty())
        follow(next, chain + " -> " + next, seen, unsafe);
      else if (!is_safe_in_kernels(include.target))
        unsafe.push_back(chain + " -> <" + include.target + ">");
    }
  }
}

TEST(Includes, OfKernelFilesAreSafeInEveryInstructionSet) {
  for (const SourceFile& file : files()) {
    if (room_index(file.top()) < 0 || !(file.path.ends_with("_cpu.cpp") || file.path.ends_with("_kernels.h"))) continue;
    std::set<std::string> seen;
    std::vector<std::string> unsafe;
    follow(file.path, file.path, seen, unsafe);
    for (const std::string& chain : unsafe)
      ADD_FAILURE() << chain << " may not be seen by kernels: they include *_kernels.h, core/{simd,parallel,half,random}.h, "
                    << "scatter/reduce.h and other headers of ours without a std header beyond <cstdint> and the like";
  }
}

TEST(Includes, KeepHeavyLibrariesOutOfHeaders) {
  for (const SourceFile& file : files()) {
    if (!file.is_header() || file.path.ends_with(".cuh") || room_index(file.top()) < 0) continue;
    for (const Include& include : includes_of(file))
      for (const char* heavy : {"tbb/", "oneapi/", "dnnl", "gtest/", "CLI/", "nlohmann/", "cuda", "cublas", "mpi.h"})
        if (include.target.starts_with(heavy))
          ADD_FAILURE() << where(file, include) << "<" << include.target
                        << "> belongs in a .cpp: one edit must not rebuild the world";
  }
}

}  // namespace
}  // namespace repo
