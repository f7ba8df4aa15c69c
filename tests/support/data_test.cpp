#include "tessera/tests/support/data.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace tessera::test {
namespace {

/// An environment variable for the length of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(SharedData, MissingDataFailsInCi) {
  const Variable data("TESSERA_SHARED_DATA", "/nowhere"), ci("CI", "true");
  EXPECT_EQ(shared_data(), "");
  bool have = true;
  EXPECT_NONFATAL_FAILURE(have = have_shared_data("planetoid"),
                          "needs shared data 'planetoid': no such path in TESSERA_SHARED_DATA or ../shared/data beside");
  EXPECT_FALSE(have);
}

TEST(SharedData, FolderOfTheEnvironment) {
  const Variable data("TESSERA_SHARED_DATA", "/usr"), ci("CI", "true");
  EXPECT_EQ(shared_data(), "/usr");
  EXPECT_TRUE(have_shared_data());
  EXPECT_TRUE(have_shared_data("bin"));
}

TEST(SharedData, IsThere) {
  if (!have_shared_data("README.md")) return;
  EXPECT_TRUE(std::filesystem::exists(shared_data() / "README.md"));
}

}  // namespace
}  // namespace tessera::test
