#include "tessera/core/printable.h"

#include <cstdint>

namespace tessera {
namespace {

// Bytes of the UTF-8 character that `text` starts with (RFC 3629: no overlong forms, surrogates or beyond U+10FFFF), or 0.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t{0}; };
  const auto follows = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xbf) { return byte(i) >= low && byte(i) <= high; };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (i >= most) return out + "...";
    const uint8_t byte = uint8_t(text[i]);
    const size_t length = character_bytes(text.substr(i));
    const bool c1 = length == 2 && byte == 0xc2 && uint8_t(text[i + 1]) < 0xa0;  // control characters of their own
    if (length == 0 || byte < 32 || byte == 127 || c1) {
      for (size_t k = 0; k < (c1 ? 2 : 1); ++k) {
        const uint8_t bad = uint8_t(text[i + k]);
        out += "\\x";
        out += "0123456789abcdef"[bad >> 4];
        out += "0123456789abcdef"[bad & 15];
      }
      i += c1 ? 2 : 1;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

}  // namespace tessera
