#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

/// SHA-256 (FIPS 180-4) of bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, size_t bytes);
  /// The digest as 64 lower-case hexadecimal digits; nothing may be added afterwards.
  std::string hex();

 private:
  void block(const uint8_t* data);

  uint32_t state_[8];
  uint64_t bytes_ = 0;
  uint8_t pending_[64];
};

std::string sha256(std::string_view bytes);

/// Errors: IoError when the file cannot be read.
std::string sha256_file(const std::string& path);

}  // namespace tessera
