#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Decompression with zlib. `where` (a path, a member) starts every error text. Without zlib in the build every call is an
/// Unsupported error.
namespace tessera {

/// The most bytes that `compressed` bytes of deflate can stand for: a claim beyond is refused before it is allocated.
constexpr uint64_t most_inflated(uint64_t compressed) {
  return compressed > (UINT64_MAX >> 11) ? UINT64_MAX : compressed * 1032 + 64;
}

/// A raw deflate stream that stands for exactly `size` bytes. Errors: IoError for broken data, another size.
std::string inflate_raw(std::string_view compressed, uint64_t size, const std::string& where);

/// A gzip file of one or more members (their texts follow each other). Errors: IoError for broken or truncated data, bytes
/// after the last member, more than `limit` bytes.
std::string gunzip(std::string_view bytes, uint64_t limit, const std::string& where);

/// The CRC-32 of zip and gzip.
uint32_t crc32(std::string_view bytes, const std::string& where);

/// Whether bytes start as a gzip file does.
bool is_gzip(std::string_view bytes);

/// A file's content, decompressed when it is a gzip file. Errors: as above and `read_file`.
std::string read_plain_or_gzip(const std::string& path, uint64_t limit = uint64_t{4} << 30);

}  // namespace tessera
