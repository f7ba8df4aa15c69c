#include "tessera/apps/support/event_log.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "tessera/core/error.h"

namespace tessera::apps {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

// Protocol buffers: a field is a varint of (number << 3 | kind), then a varint (kind 0), 8 bytes (1), 4 bytes (5), or a
// length and bytes (2).
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += char(value | 128);
  out += char(value);
}

template <class T>
void put_bytes(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += char(value >> (8 * i));
}

void put_text(std::string& out, int field, std::string_view text) {
  put_varint(out, uint64_t(field) << 3 | 2);
  put_varint(out, text.size());
  out += text;
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log = 7; }
std::string event_at(int64_t step) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string out;
  put_varint(out, 1 << 3 | 1);
  put_bytes(out, std::bit_cast<uint64_t>(now));
  put_varint(out, 2 << 3 | 0);
  put_varint(out, uint64_t(step));
  return out;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = kTable[(crc ^ uint8_t(c)) & 255] ^ crc >> 8;
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

EventLog::EventLog(const std::string& folder, int64_t first_step, std::string metric) : metric_(std::move(metric)) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  char host[65] = "";
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::strcpy(host, "localhost");
  // A name of its own also for two files of one second: TensorBoard reads them in the order of their names.
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
  char number[40];
  std::snprintf(number, sizeof number, "%010lld.%06lld", (long long)(now.count() / 1000000),
                (long long)(now.count() % 1000000));
  path_ = folder + "/events.out.tfevents." + number + "." + host;
  file_ = std::fopen(path_.c_str(), "wbe");
  check<IoError>(file_ != nullptr, "{}: {}", path_, std::strerror(errno));
  std::string version = event_at(0);
  put_text(version, 3, "brain.Event:2");
  record(version);
  if (first_step > 0) {
    std::string start = event_at(first_step), status;
    put_varint(status, 1 << 3 | 0);  // SessionLog { SessionStatus status = 1; }, START = 1
    put_varint(status, 1);
    put_text(start, 7, status);
    record(start);
  }
  flush();
}

EventLog::~EventLog() {
  if (file_ != nullptr) std::fclose(file_);
}

// Summary { repeated Value value = 1; }, Value { string tag = 1; float simple_value = 2; }
void EventLog::scalar(std::string_view tag, int64_t step, double value) {
  std::string entry, summary, event = event_at(step);
  put_text(entry, 1, tag);
  put_varint(entry, 2 << 3 | 5);
  put_bytes(entry, std::bit_cast<uint32_t>(float(value)));
  put_text(summary, 1, entry);
  put_text(event, 5, summary);
  record(event);
}

void EventLog::record(const std::string& event) {
  std::string out;
  put_bytes(out, uint64_t(event.size()));
  put_bytes(out, masked_crc32c(out));
  out += event;
  put_bytes(out, masked_crc32c(event));
  check<IoError>(std::fwrite(out.data(), 1, out.size(), file_) == out.size(), "{}: {}", path_, std::strerror(errno));
}

void EventLog::add(const History& history, int64_t step) {
  const auto put = [&](const std::string& tag, const std::vector<double>& values) {
    if (!values.empty() && !std::isnan(values.back())) scalar(tag, step, values.back());
  };
  put("loss/train", history.train_loss);
  put("loss/valid", history.valid_loss);
  put(metric_ + "/train", history.train_score);
  put(metric_ + "/valid", history.valid_score);
  const int64_t now = int64_t(std::time(nullptr));
  if (now == flushed_) return;
  flush();
  flushed_ = now;
}

void EventLog::flush() { check<IoError>(std::fflush(file_) == 0, "{}: {}", path_, std::strerror(errno)); }

}  // namespace tessera::apps
