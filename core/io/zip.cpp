#include "tessera/core/io/zip.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tessera/core/error.h"
#include "tessera/core/io/inflate.h"

namespace tessera {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                   kLocator64 = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;

template <class T>
T number(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

struct Directory {
  uint64_t entries = 0, size = 0, offset = 0;
  uint64_t end = 0;  // where the record that describes it begins: the directory lies right before
};

Directory find_directory(const File& file) {
  const std::string& path = file.path();
  check<IoError>(file.size() >= kEndBytes, "{}: has {} bytes, expected a zip archive (at least {})", path, file.size(),
                 kEndBytes);
  // The end record is followed by a comment of at most 65535 bytes only.
  const size_t tail_bytes = size_t(std::min<uint64_t>(file.size(), kEndBytes + 65535));
  const uint64_t tail_at = file.size() - tail_bytes;
  std::string tail(tail_bytes, '\0');
  file.read(tail_at, tail.data(), tail.size());
  std::optional<size_t> end;
  for (size_t at = tail.size() - kEndBytes + 1; at-- > 0 && !end;)
    if (number<uint32_t>(&tail[at]) == kEnd && at + kEndBytes + number<uint16_t>(&tail[at + 20]) <= tail.size()) end = at;
  check<IoError>(end.has_value(), "{}: is no zip archive, or a truncated one (no end of directory record)", path);

  const char* record = &tail[*end];
  Directory directory{number<uint16_t>(record + 10), number<uint32_t>(record + 12), number<uint32_t>(record + 16),
                      tail_at + *end};
  uint32_t disk = number<uint16_t>(record + 4), disk_entries = number<uint16_t>(record + 8);
  const bool wants64 = directory.entries == 0xffff || directory.size == 0xffffffff || directory.offset == 0xffffffff;
  // A zip64 archive has a second record, found through a locator right before the first.
  char locator[kLocatorBytes] = {};
  if (directory.end >= kLocatorBytes) file.read(directory.end - kLocatorBytes, locator, kLocatorBytes);
  if (number<uint32_t>(locator) == kLocator64) {
    char end64[kEnd64Bytes];
    const auto is_there = [&](uint64_t at) {
      if (at > file.size() || file.size() - at < kEnd64Bytes) return false;
      file.read(at, end64, kEnd64Bytes);
      return number<uint32_t>(end64) == kEnd64;
    };
    // Bytes in front of the archive shift it from where the locator says to right before the locator.
    const uint64_t said = number<uint64_t>(locator + 8), before = directory.end - kLocatorBytes - kEnd64Bytes;
    const bool there = is_there(said);
    if (there || is_there(before)) {
      disk = number<uint32_t>(end64 + 16);
      disk_entries = uint32_t(std::min<uint64_t>(number<uint64_t>(end64 + 24), UINT32_MAX));
      directory = {number<uint64_t>(end64 + 32), number<uint64_t>(end64 + 40), number<uint64_t>(end64 + 48),
                   there ? said : before};
    } else {
      // A member's name or comment may end in the locator's mark: the first record then stands for itself.
      check<IoError>(!wants64, "{}: there is no zip64 record at offset {}", path, said);
    }
  }
  check<IoError>(disk == 0 && disk_entries == std::min<uint64_t>(directory.entries, UINT32_MAX),
                 "{}: is one part of a zip archive in several parts, which is not read", path);
  return directory;
}

}  // namespace

ZipFile::ZipFile(const std::string& path) : file_(path) {
  const Directory directory = find_directory(file_);
  check<IoError>(directory.size <= directory.end && directory.offset <= directory.end - directory.size,
                 "{}: the zip directory is said to be {} bytes at offset {} but ends at {}", path, directory.size,
                 directory.offset, directory.end);
  check<IoError>(directory.entries <= directory.size / kCentralBytes,
                 "{}: the zip directory of {} bytes cannot hold {} members", path, directory.size, directory.entries);
  // Bytes in front of the archive (a self-extracting program) shift every offset.
  const uint64_t shift = directory.end - directory.size - directory.offset;
  std::string bytes(size_t(directory.size), '\0');
  file_.read(directory.end - directory.size, bytes.data(), bytes.size());

  members_.reserve(size_t(directory.entries));
  size_t at = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    check<IoError>(bytes.size() - at >= kCentralBytes && number<uint32_t>(&bytes[at]) == kCentral,
                   "{}: entry {} of {} of the zip directory is broken", path, i, directory.entries);
    const char* entry = &bytes[at];
    const size_t name_bytes = number<uint16_t>(entry + 28), extra_bytes = number<uint16_t>(entry + 30),
                 comment_bytes = number<uint16_t>(entry + 32);
    check<IoError>(bytes.size() - at - kCentralBytes >= name_bytes + extra_bytes + comment_bytes,
                   "{}: entry {} of {} of the zip directory is broken", path, i, directory.entries);
    ZipMember member;
    member.name.assign(entry + kCentralBytes, name_bytes);
    member.encrypted = (number<uint16_t>(entry + 8) & 1) != 0;
    member.method = number<uint16_t>(entry + 10);
    member.crc = number<uint32_t>(entry + 16);
    member.compressed_size = number<uint32_t>(entry + 20);
    member.size = number<uint32_t>(entry + 24);
    member.offset = number<uint32_t>(entry + 42);

    // Block 1 of the extra field holds, in this order, those of the three that did not fit 32 bits.
    uint64_t* wide[] = {&member.size, &member.compressed_size, &member.offset};
    const bool needs_wide =
        std::any_of(std::begin(wide), std::end(wide), [](const uint64_t* v) { return *v == 0xffffffff; });
    const std::string_view extra(entry + kCentralBytes + name_bytes, extra_bytes);
    for (size_t e = 0; needs_wide && e + 4 <= extra.size();) {
      const size_t length = number<uint16_t>(&extra[e + 2]);
      if (length > extra.size() - e - 4) break;
      if (number<uint16_t>(&extra[e]) == 1) {
        size_t from = e + 4;
        for (uint64_t* value : wide) {
          if (*value != 0xffffffff) continue;
          check<IoError>(from + 8 <= e + 4 + length, "{}: member '{}' has a zip64 block that is too short", path,
                         printable(member.name));
          *value = number<uint64_t>(&extra[from]);
          from += 8;
        }
        break;
      }
      e += 4 + length;
    }
    check<IoError>(member.offset <= UINT64_MAX - shift, "{}: member '{}' lies at offset {}, beyond the file", path,
                   printable(member.name), member.offset);
    member.offset += shift;
    members_.push_back(std::move(member));
    at += kCentralBytes + name_bytes + extra_bytes + comment_bytes;
  }
}

const ZipMember* ZipFile::find(std::string_view name) const {
  for (size_t i = members_.size(); i-- > 0;)
    if (members_[i].name == name) return &members_[i];
  return nullptr;
}

std::string ZipFile::read(const ZipMember& member, uint64_t limit) const {
  const std::string where = path() + ": member '" + printable(member.name) + "'";
  check<IoError>(!member.encrypted, "{} is encrypted, which is not read", where);
  check<IoError>(member.method == 0 || member.method == 8,
                 "{} has compression method {}, expected 0 (stored) or 8 (deflate)", where, member.method);
  check<IoError>(member.size <= limit, "{} has {} bytes, at most {} are read", where, member.size, limit);
  check<IoError>(member.method != 0 || member.size == member.compressed_size, "{} is stored but its sizes {} and {} differ",
                 where, member.size, member.compressed_size);
  check<IoError>(member.offset <= file_.size() && file_.size() - member.offset >= kLocalBytes,
                 "{} lies at offset {}, beyond the file of {} bytes", where, member.offset, file_.size());
  char local[kLocalBytes];
  file_.read(member.offset, local, kLocalBytes);
  check<IoError>(number<uint32_t>(local) == kLocal, "{} has no header at offset {}", where, member.offset);
  const uint64_t data = member.offset + kLocalBytes + number<uint16_t>(local + 26) + number<uint16_t>(local + 28);
  check<IoError>(data <= file_.size() && member.compressed_size <= file_.size() - data,
                 "{} has {} bytes at offset {} but the file has {}", where, member.compressed_size, data, file_.size());
  std::string bytes(size_t(member.compressed_size), '\0');
  file_.read(data, bytes.data(), bytes.size());
  if (member.method == 8) bytes = inflate_raw(bytes, member.size, where);
  const uint32_t crc = crc32(bytes, where);
  check<IoError>(crc == member.crc, "{} is damaged: its CRC is {}, expected {}", where, crc, member.crc);
  return bytes;
}

}  // namespace tessera
