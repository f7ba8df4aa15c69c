#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

/// Archives as other programs write them, for tests of the readers.
namespace tessera {

enum class ZipStyle {
  plain,
  zip64_extra,  ///< true 32-bit sizes and a zip64 block in local headers (numpy on Python 3.11)
  zip64_only,   ///< 0xffffffff in every 32-bit field, zip64 blocks and a zip64 end record
  descriptor,   ///< sizes 0 in local headers, a data descriptor behind the data
};

struct ZipOptions {
  bool deflate = false;
  ZipStyle style = ZipStyle::plain;
  std::string comment = {};
};

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline uint32_t crc32_of(const std::string& bytes) {
  return uint32_t(::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), uInt(bytes.size())));
}

/// window_bits: -15 raw deflate, 31 gzip.
inline std::string deflated(const std::string& bytes, int window_bits) {
  z_stream z{};
  ::deflateInit2(&z, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&z, bytes.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = uInt(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = uInt(out.size());
  ::deflate(&z, Z_FINISH);
  out.resize(out.size() - z.avail_out);
  ::deflateEnd(&z);
  return out;
}

inline std::string make_gzip(const std::string& bytes) { return deflated(bytes, 31); }

inline std::string make_zip(const std::vector<std::pair<std::string, std::string>>& members,
                            const ZipOptions& options = {}) {
  const auto u16 = [](size_t v) { return little_endian(uint16_t(v)); };
  const auto u32 = [](size_t v) { return little_endian(uint32_t(v)); };
  const auto u64 = [](size_t v) { return little_endian(uint64_t(v)); };
  std::string out, directory;
  for (const auto& [name, content] : members) {
    const std::string data = options.deflate ? deflated(content, -15) : content;
    const uint32_t crc = crc32_of(content);
    const bool wide = options.style == ZipStyle::zip64_only, descriptor = options.style == ZipStyle::descriptor;
    const size_t offset = out.size();
    const std::string method = u16(options.deflate ? 8 : 0), flags = u16(descriptor ? 8 : 0), time = u32(0);
    std::string extra;
    if (wide || options.style == ZipStyle::zip64_extra) extra = u16(1) + u16(16) + u64(content.size()) + u64(data.size());
    out += u32(0x04034b50) + u16(wide ? 45 : 20) + flags + method + time;
    if (descriptor)
      out += u32(0) + u32(0) + u32(0);
    else
      out += u32(crc) + u32(wide ? 0xffffffff : data.size()) + u32(wide ? 0xffffffff : content.size());
    out += u16(name.size()) + u16(extra.size()) + name + extra + data;
    if (descriptor) out += u32(0x08074b50) + u32(crc) + u32(data.size()) + u32(content.size());
    const std::string central_extra =
        wide ? u16(1) + u16(24) + u64(content.size()) + u64(data.size()) + u64(offset) : std::string();
    directory += u32(0x02014b50) + u16(45) + u16(20) + flags + method + time + u32(crc) +
                 u32(wide ? 0xffffffff : data.size()) + u32(wide ? 0xffffffff : content.size()) + u16(name.size()) +
                 u16(central_extra.size()) + u16(0) + u16(0) + u16(0) + u32(0) + u32(wide ? 0xffffffff : offset) + name +
                 central_extra;
  }
  const size_t at = out.size(), count = members.size();
  out += directory;
  const bool wide = options.style == ZipStyle::zip64_only;
  if (wide) {
    const size_t end64 = out.size();
    out += u32(0x06064b50) + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(count) + u64(count) +
           u64(directory.size()) + u64(at);
    out += u32(0x07064b50) + u32(0) + u64(end64) + u32(1);
  }
  out += u32(0x06054b50) + u16(0) + u16(0) + u16(wide ? 0xffff : count) + u16(wide ? 0xffff : count) +
         u32(wide ? 0xffffffff : directory.size()) + u32(wide ? 0xffffffff : at) + u16(options.comment.size()) +
         options.comment;
  return out;
}

}  // namespace tessera
