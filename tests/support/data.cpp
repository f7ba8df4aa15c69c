#include "tessera/tests/support/data.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tessera::test {

std::filesystem::path shared_data() {
  const char* set = std::getenv("TESSERA_SHARED_DATA");
  const std::filesystem::path path = set != nullptr && *set != '\0'
                                         ? std::filesystem::path(set)
                                         : std::filesystem::path(TESSERA_SOURCE_DIR) / ".." / "shared" / "data";
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path : std::filesystem::path();
}

std::filesystem::path repository_file(const std::string& path) { return std::filesystem::path(TESSERA_SOURCE_DIR) / path; }

namespace {
void skip(const std::string& why) { GTEST_SKIP() << why; }
}  // namespace

bool have_shared_data(const std::string& name) {
  const std::filesystem::path root = shared_data();
  std::error_code ignored;
  if (!root.empty() && (name.empty() || std::filesystem::exists(root / name, ignored))) return true;
  const std::string why = "needs shared data" + (name.empty() ? "" : " '" + name + "'") +
                          ": no such path in TESSERA_SHARED_DATA or ../shared/data beside the repository";
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string(ci) == "true")
    ADD_FAILURE() << why;
  else
    skip(why);
  return false;
}

}  // namespace tessera::test
