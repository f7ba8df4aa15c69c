#include "tessera/core/io/csv.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/core/error.h"
#include "tessera/tests/core/io/make_zip.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

// "line:field|field" for every row, rows by spaces.
std::string read(const std::string& text, const CsvOptions& options = {}) {
  std::string out;
  parse_csv(text, "p", options, [&](const CsvRow& row) {
    out.append(out.empty() ? "" : " ").append(std::to_string(row.line)).append(":");
    for (size_t i = 0; i < row.fields.size(); ++i) out.append(i == 0 ? "" : "|").append(row.fields[i]);
  });
  return out;
}
std::string error(const std::string& text, const CsvOptions& options = {}) {
  return error_of<IoError>([&] { read(text, options); });
}

TEST(Csv, Delimiters) {
  EXPECT_EQ(read("a,b\nc,d\n"), "1:a|b 2:c|d");
  EXPECT_EQ(read("a;b,5\nc;d"), "1:a|b,5 2:c|d");
  EXPECT_EQ(read("a\tb;c\n\td\n"), "1:a|b;c 2:|d");
  EXPECT_EQ(read("  a   b \n c\td\n"), "1:a|b 2:c|d");
  EXPECT_EQ(read("a\nb\n"), "1:a 2:b");
  EXPECT_EQ(read("a b,c d\n", {.delimiter = ' '}), "1:a|b,c|d");
  EXPECT_EQ(read("a b , c d\n"), "1:a b|c d");
  EXPECT_EQ(read("a,\n,b\n,\n"), "1:a| 2:|b 3:|");
}

TEST(Csv, LineEnds) {
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("\n\n  \n"), "");
  EXPECT_EQ(read("a,b\r\n\r\nc,d"), "1:a|b 3:c|d");
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a,b"),
            "1:a|b");
  EXPECT_EQ(read("a,b\r"), "1:a|b");
  EXPECT_EQ(read("a b\r\nc d\r\n"), "1:a|b 2:c|d");
}

TEST(Csv, Quotes) {
  EXPECT_EQ(read("\"a,b\",\"c\"\"d\"\n"), "1:a,b|c\"d");
  EXPECT_EQ(read("\"a\nb\",c\nd,e\n"), "1:a\nb|c 3:d|e");
  EXPECT_EQ(read("\"\",\"\"\"\"\n"), "1:|\"");
  EXPECT_EQ(read("a\"b,c\n"), "1:a\"b|c");
  EXPECT_EQ(read("\"a;b\",c\n"), "1:a;b|c");
}

TEST(Csv, Comments) {
  EXPECT_EQ(read("#x y z\na#1 b\n# c\nc d#2\n", {.comment = '#'}), "2:a#1|b 4:c|d#2");
  EXPECT_EQ(read("#x y\n"), "1:#x|y");
}

TEST(Csv, Errors) {
  EXPECT_EQ(error("a,b\nc\n"), "p: line 2 has 1 fields, expected 2 as before");
  EXPECT_EQ(error("a,b\n\nc,d,e"), "p: line 3 has 3 fields, expected 2 as before");
  EXPECT_EQ(read("a,b\nc\n", {.same_width = false}), "1:a|b 2:c");
  EXPECT_EQ(error("a,b\nc,\"d\n\n"), "p: line 2 opens a quote that is never closed");
  EXPECT_EQ(error("a,\"b\"c\n"), "p: line 1 has text after a closing quote");
  EXPECT_EQ(error(std::string("a,b\nc\0,d", 8)), "p: line 2 has a zero byte, expected text");
}

TEST(Csv, FilesPlainAndGzip) {
  const TemporaryFolder folder;
  for (const std::string& content : {std::string("a,b\n"), make_gzip("a,b\n")}) {
    put(folder / "f.csv", content);
    int64_t rows = 0;
    read_csv(folder / "f.csv", {}, [&](const CsvRow& row) { rows += int64_t(row.fields.size()); });
    EXPECT_EQ(rows, 2);
  }
  put(folder / "f.csv", make_gzip(std::string(2000, 'x')));
  EXPECT_EQ(error_of<IoError>([&] { read_csv(folder / "f.csv", {.limit = 1000}, [](const CsvRow&) {}); }),
            (folder / "f.csv") + ": has more than 1000 bytes when decompressed");
}

TEST(Csv, Numbers) {
  EXPECT_EQ(to_integer("42"), 42);
  EXPECT_EQ(to_integer("+42"), 42);
  EXPECT_EQ(to_integer("-9223372036854775808"), INT64_MIN);
  for (const char* bad : {"", "+", "-", "+-1", "4 2", "4.0", "9223372036854775808", "0x4", " 4"})
    EXPECT_FALSE(to_integer(bad).has_value()) << bad;
  EXPECT_EQ(to_real("1.5e3"), 1500.0);
  EXPECT_EQ(to_real("+.5"), 0.5);
  EXPECT_EQ(to_real("4"), 4.0);
  for (const char* bad : {"", "+", "x", "1,5", "1.5x", "1e999"}) EXPECT_FALSE(to_real(bad).has_value()) << bad;
}

TEST(Csv, GarbageIsAnErrorOrRows) {
  std::mt19937 random(3);
  const std::string letters = "a1,;\t \n\r\"#\0";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) text += letters[random() % letters.size()];
    try {
      read(text, {.comment = round % 2 ? '#' : '\0', .same_width = round % 3 == 0});
    } catch (const IoError&) {
    }
  }
}

}  // namespace
}  // namespace tessera
