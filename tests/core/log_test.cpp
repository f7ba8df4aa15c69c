#include "tessera/core/log.h"

#include <gtest/gtest.h>

#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/child.h"

namespace tessera::test {
namespace {

TEST(Log, SilentUnlessAsked) {
  testing::internal::CaptureStderr();
  log_dispatch("gather: {} rows", 3);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  set_log_dispatch(true);
  testing::internal::CaptureStderr();
  log_dispatch("gather: {} rows, {}", 3, "in order");
  log_dispatch("plain");
  set_log_dispatch(false);
  log_dispatch("not wanted");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tessera: gather: 3 rows, in order\ntessera: plain\n");
}

TEST(LogChild, DISABLED_Reports) {
  std::string text;
  const std::string error = error_of([&] { text = logs_dispatch() ? "on" : "off"; });
  report(error == "no error" ? text : error);
}

TEST(Log, Environment) {
  const auto with = [](const std::string& value) {
    return run_child("LogChild.DISABLED_Reports", {"TESSERA_LOG=" + value});
  };
  EXPECT_EQ(with("dispatch"), "on");
  EXPECT_EQ(with(""), "off");
  EXPECT_EQ(with("all"), "InvalidArgument: TESSERA_LOG is 'all' but only 'dispatch' is known");
}

}  // namespace
}  // namespace tessera::test
