#include "tessera/core/printable.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace tessera {
namespace {

TEST(Printable, OneLine) {
  EXPECT_EQ(printable("größe 切片 \U0001f600"), "größe 切片 \U0001f600");
  EXPECT_EQ(printable("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, OnlyUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond U+10FFFF";
  EXPECT_EQ(printable("\xc2\x85"), "\\xc2\\x85") << "a line break to some terminals";
}

TEST(Printable, CutBetweenCharacters) {
  EXPECT_EQ(printable(std::string(100, 'x')), std::string(100, 'x'));
  EXPECT_EQ(printable(std::string(200, 'x')), std::string(100, 'x') + "...");
  EXPECT_EQ(printable("ééé", 3), "éé...");
  EXPECT_EQ(printable(std::string(200, 'x'), SIZE_MAX), std::string(200, 'x'));
}

}  // namespace
}  // namespace tessera
