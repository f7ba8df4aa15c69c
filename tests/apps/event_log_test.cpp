// Event files, read by a decoder that shares nothing with the writer: bitwise CRC, its own walk over the messages.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "tessera/apps/support/event_log.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera::test {
namespace {

uint32_t crc_by_bits(const std::string& bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes)
    for (int bit = 0; bit < 8; ++bit) {
      const bool one = (crc ^ uint32_t(uint8_t(c)) >> bit) & 1;
      crc = crc >> 1 ^ (one ? 0x82F63B78 : 0);
    }
  return ~crc;
}

template <class T>
T at(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// One message: field number -> raw values; varints and fixed numbers as 8 bytes.
using Fields = std::multimap<int, std::string>;

Fields fields_of(const std::string& bytes) {
  Fields out;
  size_t i = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = uint8_t(bytes.at(i++));
      value |= uint64_t(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (i < bytes.size()) {
    const uint64_t key = varint();
    size_t size = 0;
    std::string value;
    if (key % 8 == 0) {
      const uint64_t number = varint();
      value.assign(reinterpret_cast<const char*>(&number), 8);
    } else {
      size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : size_t(varint());
      value = bytes.substr(i, size);
      i += size;
    }
    out.emplace(int(key / 8), value);
  }
  return out;
}

struct Point {
  int64_t step;
  float value;
};

struct Events {
  std::map<std::string, std::vector<Point>> curves;
  std::vector<int64_t> starts;
  std::string version;
};

Events decode(const std::string& path) {
  Events out;
  const std::string file = read_file(path);
  for (size_t i = 0; i < file.size();) {
    const auto unmask = [](uint32_t masked) {
      const uint32_t rotated = masked - 0xA282EAD8;
      return rotated >> 17 | rotated << 15;
    };
    const uint64_t size = at<uint64_t>(file, i);
    EXPECT_EQ(unmask(at<uint32_t>(file, i + 8)), crc_by_bits(file.substr(i, 8)));
    const std::string data = file.substr(i + 12, size);
    EXPECT_EQ(unmask(at<uint32_t>(file, i + 12 + size)), crc_by_bits(data));
    i += 16 + size;
    const Fields event = fields_of(data);
    EXPECT_GT(at<double>(event.find(1)->second, 0), 1.6e9) << "wall time";
    const int64_t step = at<int64_t>(event.find(2)->second, 0);
    if (event.contains(3)) out.version = event.find(3)->second;
    if (event.contains(7)) out.starts.push_back(step);
    if (!event.contains(5)) continue;
    for (const auto& [number, summary] : fields_of(event.find(5)->second)) {
      EXPECT_EQ(number, 1);
      const Fields value = fields_of(summary);
      out.curves[value.find(1)->second].push_back({step, at<float>(value.find(2)->second, 0)});
    }
  }
  return out;
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_TRUE(entry.path().filename().string().starts_with("events.out.tfevents."));
    out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(event_log, crc32c_of_the_standard) {
  EXPECT_EQ(apps::crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(apps::crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720
  EXPECT_EQ(apps::crc32c(""), 0u);
  EXPECT_EQ(crc_by_bits("123456789"), 0xE3069283u);
}

TEST(event_log, scalars_come_back) {
  const TemporaryFolder folder;
  {
    apps::EventLog log(folder / "a/b", 0);
    log.scalar("loss/train", 1, 0.5);
    log.scalar("loss/train", 300, -1e30);
    log.scalar("ü", int64_t{1} << 40, NAN);
  }
  const Events events = decode(event_files(folder / "a/b").at(0));
  EXPECT_EQ(events.version, "brain.Event:2");
  EXPECT_TRUE(events.starts.empty());
  EXPECT_EQ(events.curves.at("loss/train").at(1).step, 300);
  EXPECT_EQ(events.curves.at("loss/train").at(1).value, -1e30F);
  EXPECT_EQ(events.curves.at("ü").at(0).step, int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(events.curves.at("ü").at(0).value));
}

TEST(event_log, of_a_resumed_run_of_several) {
  const TemporaryFolder folder;
  const std::vector<std::string> base = {"tessera-train-node", "--split",    "random:50%/20%", "--log-dir", folder / "log",
                                         "--checkpoint",       folder / "c", "--resume",       "--seed",    "4"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return run_program(more);
  };
  ASSERT_EQ(with({"--epochs", "10"}).code, 0);
  ASSERT_EQ(with({"--epochs", "15"}).code, 0);
  const std::vector<std::string> files = event_files(folder / "log");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(decode(files[0]).curves.at("accuracy/valid").size(), 10u);
  const Events second = decode(files[1]);
  EXPECT_EQ(second.starts, std::vector<int64_t>{10}) << "TensorBoard drops what was logged from here on";
  EXPECT_EQ(second.curves.at("loss/train").front().step, 11);
  EXPECT_EQ(second.curves.at("loss/valid").back().step, 15);
  ASSERT_EQ(
      run_program({"tessera-train-node", "--runs", "2", "--seed", "4", "--epochs", "3", "--log-dir", folder / "two"}).code,
      0);
  for (const char* name : {"two/seed-4", "two/seed-5"})
    EXPECT_EQ(decode(event_files(folder / name).at(0)).curves.at("loss/train").size(), 3u) << name;
}

}  // namespace
}  // namespace tessera::test
