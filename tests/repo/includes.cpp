// Who may include what.

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(includes, are_spelled_from_tessera) {
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

TEST(includes, follow_the_order_of_the_doors) {
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

/// Headers without inline functions of the standard library, and ours that are safe in every instruction set: nothing
/// in them is emitted as a weak function that the linker could choose for code that must run on an older CPU.
bool is_safe_in_kernels(const std::string& target) {
  static const char* const allowed[] = {
      "cstdint",
      "cstddef",
      "climits",
      "cfloat",
      "immintrin.h",
      "tessera/core/isa.h",
      "tessera/core/simd.h",
      "tessera/core/parallel.h",
      "tessera/core/half.h",
      "tessera/core/random.h",
      "tessera/scatter/reduce.h",
  };
  return std::find(std::begin(allowed), std::end(allowed), target) != std::end(allowed) || target.starts_with("hwy/") ||
         (target.starts_with("tessera/") && target.ends_with("_kernels.h"));
}

TEST(includes, of_kernel_files_are_safe_in_every_instruction_set) {
  for (const SourceFile& file : files()) {
    const bool kernel = file.path.ends_with("_cpu.cpp") || file.path.ends_with("_kernels.h");
    if (room_index(file.top()) < 0 || !(kernel || is_safe_in_kernels("tessera/" + file.path))) continue;
    for (const Include& include : includes_of(file))
      if (!is_safe_in_kernels(include.target))
        ADD_FAILURE() << where(file, include) << include.target
                      << " may not be seen by kernels: they include *_kernels.h, core/{simd,parallel,half,random,isa}.h, "
                         "scatter/reduce.h, <cstdint> and the like (is_safe_in_kernels lists all)";
  }
}

TEST(includes, keep_heavy_libraries_out_of_headers) {
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
