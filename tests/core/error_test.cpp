#include "tessera/core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(Error, CheckFillsItsPlaceholdersInOrder) {
  EXPECT_EQ(error_of([] { check(false, "spmm: x has {} dimensions but needs {}", 3, 2); }),
            "InvalidArgument: spmm: x has 3 dimensions but needs 2");
  EXPECT_EQ(error_of([] { check(false, "no placeholder at all"); }), "InvalidArgument: no placeholder at all");
  EXPECT_EQ(error_of([] { check(false, "{}{}{}", 1, 2, 3); }), "InvalidArgument: 123");
  EXPECT_EQ(error_of([] { check(true, "never {}", 1); }), "no error");
}

TEST(Error, EveryTypeIsAnErrorAndARuntimeError) {
  EXPECT_EQ(error_of([] { check<Unsupported>(false, "u {}", 1); }), "Unsupported: u 1");
  EXPECT_EQ(error_of([] { check<IoError>(false, "i {}", 1); }), "IoError: i 1");
  EXPECT_EQ(error_of([] { check<InternalError>(false, "n {}", 1); }), "InternalError: n 1");
  EXPECT_THROW(fail("x"), Error);
  EXPECT_THROW(fail<IoError>("x"), Error);
  EXPECT_THROW(fail<InternalError>("x"), std::runtime_error);
}

TEST(Error, TextsOfValues) {
  const auto text = [](auto value) { return error_of([&] { fail("{}", value); }).substr(17); };
  EXPECT_EQ(text(std::string("a b")), "a b");
  EXPECT_EQ(text(std::string_view("abc", 2)), "ab");
  EXPECT_EQ(text("literal"), "literal");
  EXPECT_EQ(text(true), "true");
  EXPECT_EQ(text(false), "false");
  EXPECT_EQ(text(int8_t(-5)), "-5");
  EXPECT_EQ(text(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(text(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(0.5f), "0.5");
  EXPECT_EQ(text(1e300), "1e+300");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "-inf");
}

// A value is data: braces in a path or a column name are printed, not filled.
TEST(Error, ValuesAreNotPlaceholders) {
  EXPECT_EQ(error_of([] { fail("{} and {}", "{}", "{"); }), "InvalidArgument: {} and {");
  EXPECT_EQ(error_of([] { fail("{ } {x} }{ {} }", 1); }), "InvalidArgument: { } {x} }{ 1 }");
}

}  // namespace
}  // namespace tessera::test
