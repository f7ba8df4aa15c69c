#include "tessera/core/io/zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "tessera/core/error.h"
#include "tessera/core/io/inflate.h"
#include "tessera/core/io/npy.h"
#include "tessera/tests/core/io/make_zip.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera {
namespace {

class Zip : public testing::Test {
 protected:
  std::string error(const std::string& archive, const std::string& member = "a") {
    put(path_, archive);
    const std::string text = error_of<IoError>([&] {
      const ZipFile zip(path_);
      const ZipMember* found = zip.find(member);
      if (found == nullptr) throw std::runtime_error("no member");
      zip.read(*found);
    });
    EXPECT_EQ(text.rfind(path_ + ": ", 0), 0u) << text;
    return text.substr(std::min(text.size(), path_.size() + 2));
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "f.zip";
};

const std::string kText = "some text, some text, some text, some text";

TEST_F(Zip, StoredAndDeflated) {
  for (const bool deflate : {false, true})
    for (const ZipStyle style : {ZipStyle::plain, ZipStyle::zip64_extra, ZipStyle::zip64_only, ZipStyle::descriptor}) {
      put(path_, make_zip({{"a", kText}, {"folder/", ""}, {"b", ""}}, {.deflate = deflate, .style = style}));
      const ZipFile zip(path_);
      ASSERT_EQ(zip.members().size(), 3u);
      EXPECT_EQ(zip.read(*zip.find("a")), kText);
      EXPECT_EQ(zip.read(*zip.find("folder/")), "");
      EXPECT_EQ(zip.read(*zip.find("b")), "");
      EXPECT_EQ(zip.find("c"), nullptr);
    }
}

TEST_F(Zip, BytesAroundTheArchive) {
  put(path_, "#!/bin/sh\n" + make_zip({{"a", kText}}, {.comment = "a comment"}));
  const ZipFile zip(path_);
  EXPECT_EQ(zip.read(*zip.find("a")), kText);
  put(path_, make_zip({}));
  EXPECT_TRUE(ZipFile(path_).members().empty());
}

TEST_F(Zip, TheLastOfANameCounts) {
  put(path_, make_zip({{"a", "old"}, {"a", "new"}}));
  const ZipFile zip(path_);
  EXPECT_EQ(zip.read(*zip.find("a")), "new");
}

TEST_F(Zip, BrokenDirectories) {
  EXPECT_EQ(error(""), "has 0 bytes, expected a zip archive (at least 22)");
  EXPECT_EQ(error(std::string(1000, 'x')), "is no zip archive, or a truncated one (no end of directory record)");
  const std::string good = make_zip({{"a", kText}});
  const size_t end = good.size() - 22;
  const auto with = [&](size_t at, const std::string& bytes) { return std::string(good).replace(at, bytes.size(), bytes); };
  EXPECT_EQ(error(with(end + 10, "\xff\xff")), "is one part of a zip archive in several parts, which is not read");
  EXPECT_EQ(error(with(end + 8, "\x05\x05").replace(end + 10, 2, "\x05\x05")),
            "the zip directory of 47 bytes cannot hold 1285 members");
  EXPECT_EQ(error(with(end + 12, "\xff\xff\xff\x7f")),
            "the zip directory is said to be 2147483647 bytes at offset 73 but ends at 120");
  EXPECT_EQ(error(with(end + 16, "\xff\xff\xff\x7f")),
            "the zip directory is said to be 47 bytes at offset 2147483647 but ends at 120");
  EXPECT_EQ(error(with(73, "XX")), "entry 0 of 1 of the zip directory is broken");
  EXPECT_EQ(error(with(73 + 28, "\xff\xff")), "entry 0 of 1 of the zip directory is broken");
  const std::string wide = make_zip({{"a", kText}}, {.style = ZipStyle::zip64_only});
  const size_t wide_end = wide.size() - 22;
  const auto wide_with = [&](size_t at, const std::string& bytes) {
    return std::string(wide).replace(at, bytes.size(), bytes);
  };
  EXPECT_EQ(error(wide_with(wide_end - 20 - 56, "XX")), "there is no zip64 record at offset 168");
  EXPECT_EQ(error(wide_with(wide_end - 20 - 56, "XX").replace(wide_end - 20 + 8, 4, "\xff\xff\xff\xff")),
            "there is no zip64 record at offset 4294967295");
}

TEST_F(Zip, BrokenMembers) {
  const std::string good = make_zip({{"a", kText}});
  const size_t entry = 73;
  const auto with = [&](size_t at, const std::string& bytes) { return std::string(good).replace(at, bytes.size(), bytes); };
  EXPECT_EQ(error(with(entry + 8, "\1")), "member 'a' is encrypted, which is not read");
  EXPECT_EQ(error(with(entry + 10, "\x63")), "member 'a' has compression method 99, expected 0 (stored) or 8 (deflate)");
  EXPECT_EQ(error(with(entry + 24, "\x30")), "member 'a' is stored but its sizes 48 and 42 differ");
  EXPECT_EQ(error(with(entry + 42, "\xff\xff")), "member 'a' lies at offset 65535, beyond the file of 142 bytes");
  EXPECT_EQ(error(with(entry + 42, "\x05")), "member 'a' has no header at offset 5");
  EXPECT_EQ(error(with(26, "\xff")), "member 'a' has 42 bytes at offset 285 but the file has 142");
  EXPECT_EQ(error(with(40, "X")), "member 'a' is damaged: its CRC is " +
                                      std::to_string(crc32_of(good.substr(31, 9) + "X" + good.substr(41, 32))) +
                                      ", expected " + std::to_string(crc32_of(kText)));
  EXPECT_EQ(error(with(entry + 20, std::string(8, '\xff'))),
            "member 'a' has 4294967295 bytes at offset 31 but the file has 142");
}

TEST_F(Zip, BrokenCompression) {
  const std::string good = make_zip({{"a", kText}}, {.deflate = true});
  const size_t entry = good.size() - 22 - 47;
  const size_t compressed = entry - 31;
  const auto with = [&](size_t at, const std::string& bytes) { return std::string(good).replace(at, bytes.size(), bytes); };
  EXPECT_EQ(error(with(31, "\xff")), "member 'a': the compressed data is broken after 0 bytes (invalid block type)");
  EXPECT_EQ(error(with(entry + 24, "\xff\xff\xff\x7f")),
            "member 'a': " + std::to_string(compressed) + " compressed bytes cannot stand for 2147483647");
  EXPECT_EQ(error(with(entry + 24, "\x20")), "member 'a': the compressed data stands for more than the 32 bytes it claims");
  EXPECT_EQ(error(with(entry + 24, "\x40")), "member 'a': the compressed data ends after 42 bytes, expected 64");
  EXPECT_EQ(error(with(entry + 20, std::string(1, char(compressed - 3)))).substr(0, 42),
            "member 'a': the compressed data ends after");
}

TEST_F(Zip, EveryTruncationAndEveryFlippedByteIsAnErrorOrTheSameBytes) {
  for (const ZipStyle style : {ZipStyle::plain, ZipStyle::zip64_only}) {
    const std::string good = make_zip({{"a", kText}}, {.deflate = true, .style = style});
    for (size_t size = 0; size < good.size(); ++size) {
      put(path_, good.substr(0, size));
      EXPECT_THROW(ZipFile zip(path_), IoError) << size;
    }
    for (size_t at = 0; at < good.size(); ++at)
      for (const int flip : {1, 128, 255}) {
        std::string bad = good;
        bad[at] = char(bad[at] ^ flip);
        put(path_, bad);
        try {
          const ZipFile zip(path_);
          for (const ZipMember& member : zip.members()) EXPECT_EQ(zip.read(member), kText) << at;
        } catch (const IoError&) {
        }
      }
  }
}

TEST(ZipFiles, MalformedAndOddOnes) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  for (const char* folder : {"malformed/zip", "odd/zip"})
    for (const auto& entry : std::filesystem::directory_iterator(data / folder)) {
      try {
        const ZipFile zip(entry.path());
        for (const ZipMember& member : zip.members()) {
          try {
            zip.read(member);
          } catch (const IoError&) {
          }
        }
      } catch (const IoError&) {
      }
    }
  const auto text = [&](const char* name) {
    const std::string path = data / name;
    return error_of<IoError>([&] {
             const ZipFile zip(path);
             zip.read(zip.members().at(0));
           })
        .substr(path.size() + 2);
  };
  EXPECT_EQ(text("malformed/zip/aes_archive.zip"), "member 'secret_data_128' is encrypted, which is not read");
  EXPECT_EQ(text("malformed/zip/ignore_encryption_flag.zip"), "member 'plaintext.txt' is encrypted, which is not read");
  const std::string deflate64 = text("malformed/zip/raw_deflate64_index_out_of_bounds.zip");
  EXPECT_EQ(deflate64.substr(deflate64.find("' has")), "' has compression method 9, expected 0 (stored) or 8 (deflate)");
  EXPECT_EQ(text("odd/zip/ppmd.zip"), "member 'ipsum.txt' has compression method 98, expected 0 (stored) or 8 (deflate)");
  const ZipFile zip64(data / "odd/zip/zip64_demo.zip");
  EXPECT_EQ(zip64.read(*zip64.find("-")).size(), 14u);
  const ZipFile folders(data / "odd/zip/files_and_dirs.zip");
  EXPECT_EQ(folders.read(*folders.find("file0.txt")).size(), 18u);
  const ZipFile magic(data / "odd/zip/zip64_magic_in_filename_1.zip");
  EXPECT_EQ(magic.read(magic.members().at(0)), "");
}

TEST(ZipFiles, TorchStateDict) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  const ZipFile zip(data / "models/dsmil/c16_aggregator.pth");
  int64_t arrays = 0;
  for (const ZipMember& member : zip.members()) {
    if (member.name.find("/data/") == std::string::npos) continue;
    EXPECT_EQ(zip.read(member).size(), member.size);
    ++arrays;
  }
  EXPECT_EQ(arrays, 8);
}

TEST(Gzip, MembersLimitsAndDamage) {
  const std::string one = make_gzip("hello "), two = make_gzip("world");
  EXPECT_EQ(gunzip(one + two, 100, "g"), "hello world");
  EXPECT_EQ(gunzip(make_gzip(std::string(1000000, 'x')), 1000000, "g"), std::string(1000000, 'x'));
  EXPECT_EQ(error_of<IoError>([&] { gunzip(make_gzip(std::string(1000000, 'x')), 999999, "g"); }),
            "g: has more than 999999 bytes when decompressed");
  EXPECT_EQ(error_of<IoError>([&] { gunzip(one + "xyz", 100, "g"); }), "g: 3 bytes follow the gzip data");
  for (size_t size = 2; size < one.size(); ++size)
    EXPECT_EQ(error_of<IoError>([&] { gunzip(one.substr(0, size), 100, "g"); }).substr(0, 38),
              "g: the gzip data ends in the middle, a")
        << size;
  std::string bad = one;
  bad[bad.size() - 6] ^= 1;
  EXPECT_EQ(error_of<IoError>([&] { gunzip(bad, 100, "g"); }),
            "g: the gzip data is broken after 6 bytes (incorrect data check)");
}

TEST(Gzip, OddFiles) {
  if (!test::have_shared_data()) return;
  const auto data = test::shared_data();
  EXPECT_EQ(read_plain_or_gzip(data / "odd/gz/good-file.txt"), read_file(data / "odd/gz/good-file.txt"));
  EXPECT_GT(read_plain_or_gzip(data / "odd/gz/multi.gz").size(), 0u);
}

}  // namespace
}  // namespace tessera
