#include "tessera/core/io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tessera/core/error.h"
#include "tessera/core/io/sha256.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

TEST(Sha256, KnownVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheSameDigest) {
  std::string bytes(300, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * 7);
  for (size_t piece = 1; piece <= 130; ++piece) {
    Sha256 digest;
    for (size_t at = 0; at < bytes.size(); at += piece) digest.update(bytes.data() + at, std::min(piece, bytes.size() - at));
    EXPECT_EQ(digest.hex(), sha256(bytes)) << piece;
  }
}

TEST(Sha256, OfAFile) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", std::string(700000, 'x'));
  EXPECT_EQ(sha256_file(folder / "f"), sha256(std::string(700000, 'x')));
}

TEST(File, ReadsAtAnyOffset) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "0123456789");
  const File file(folder / "f");
  EXPECT_EQ(file.size(), 10u);
  char bytes[3];
  file.read(7, bytes, 3);
  EXPECT_EQ(std::string(bytes, 3), "789");
  file.read(10, bytes, 0);
  EXPECT_EQ(error_of<IoError>([&] { file.read(8, bytes, 3); }),
            (folder / "f") + ": 3 bytes are needed at offset 8 but the file has 10");
  EXPECT_EQ(error_of<IoError>([&] { file.read(uint64_t(-1), bytes, 3); }),
            (folder / "f") + ": 3 bytes are needed at offset 18446744073709551615 but the file has 10");
}

TEST(File, CutShortAfterOpening) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "0123456789");
  const File file(folder / "f");
  fs::resize_file(folder / "f", 4);
  char bytes[10];
  EXPECT_EQ(error_of<IoError>([&] { file.read(0, bytes, 10); }),
            (folder / "f") + ": ends at offset 4 but had 10 bytes when it was opened");
}

TEST(File, WhatCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of<IoError>([&] { read_file(folder / "none"); }),
            (folder / "none") + ": cannot be opened: No such file or directory");
  EXPECT_EQ(error_of<IoError>([&] { read_file(folder.path()); }), folder.path() + ": is a folder, expected a file");
  EXPECT_EQ(error_of<IoError>([&] { read_file("/dev/null"); }), "/dev/null: is a device or pipe, expected a regular file");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of<IoError>([&] { read_file(folder / "pipe"); }),
            (folder / "pipe") + ": is a device or pipe, expected a regular file");
  write_atomically(folder / "f", "0123456789");
  EXPECT_EQ(error_of<IoError>([&] { read_file(folder / "f", 9); }), (folder / "f") + ": has 10 bytes, at most 9 are read");
}

TEST(MappedFile, ShowsTheContent) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "0123456789");
  write_atomically(folder / "empty", "");
  const MappedFile file(folder / "f");
  const MappedFile copy = file;
  EXPECT_EQ(copy.bytes(), "0123456789");
  EXPECT_EQ(MappedFile(folder / "empty").bytes(), "");
  EXPECT_EQ(error_of<IoError>([&] { MappedFile(folder / "none"); }),
            (folder / "none") + ": cannot be opened: No such file or directory");
}

TEST(WriteAtomically, ReplacesTheWholeFile) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "old content");
  write_atomically(folder / "f", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(WriteAtomically, LargeAndSmallPieces) {
  const TemporaryFolder folder;
  std::string expected;
  write_atomically(folder / "f", [&](FileWriter& out) {
    for (const size_t size : {1, 300000, 5, 262143, 1, 262144, 0, 70000}) {
      const std::string piece(size, char('a' + size % 26));
      expected += piece;
      out.write(piece);
      EXPECT_EQ(out.size(), expected.size());
    }
  });
  EXPECT_EQ(read_file(folder / "f"), expected);
}

TEST(WriteAtomically, AFailureLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "old content");
  EXPECT_THROW(write_atomically(folder / "f",
                                [](FileWriter& out) {
                                  out.write(std::string(1000000, 'x'));
                                  throw std::runtime_error("stop");
                                }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder / "f"), "old content");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(WriteAtomically, TakesOverWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  std::ofstream(folder / ".f.tmp") << "half of a file that is longer than the new one";
  write_atomically(folder / "f", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"f"});
}

TEST(WriteAtomically, TwoWritersOfOneFile) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", [&](FileWriter& out) {
    out.write("first");
    EXPECT_EQ(error_of<IoError>([&] { write_atomically(folder / "f", "second"); }),
              (folder / "f") + ": is being written by another process (" + (folder / ".f.tmp") + " is locked)");
  });
  EXPECT_EQ(read_file(folder / "f"), "first");
}

TEST(WriteAtomically, KeepsModeAndLinks) {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "old");
  fs::permissions(folder / "f", fs::perms(0600));
  fs::create_symlink("f", folder / "link");
  write_atomically(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_EQ(fs::status(folder / "f").permissions(), fs::perms(0600));
}

TEST(WriteAtomically, NamesOfAnyBytes) {
  const TemporaryFolder folder;
  const std::string inside = folder / "Präparat 切片 #1";
  fs::create_directory(inside);
  write_atomically(inside + "/größe 大小.bin", "x");
  EXPECT_EQ(read_file(inside + "/größe 大小.bin"), "x");
  EXPECT_EQ(error_of<IoError>([&] { read_file(inside + "/ä"); }),
            inside + "/ä: cannot be opened: No such file or directory");
  write_atomically(folder / std::string(255, 'n'), "long");
  EXPECT_EQ(read_file(folder / std::string(255, 'n')), "long");
}

TEST(WriteAtomically, WhatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of<IoError>([&] { write_atomically(folder / "none/f", ""); }),
            (folder / "none/f") + ": cannot be written: No such file or directory");
  EXPECT_EQ(error_of<IoError>([&] { write_atomically(folder.path(), ""); }),
            folder.path() + ": is a folder, expected a file name");
  EXPECT_EQ(error_of<IoError>([&] { write_atomically("/dev/full", "x"); }),
            "/dev/full: cannot be written: No space left on device");
  write_atomically("/dev/null", "x");
}

}  // namespace
}  // namespace tessera
