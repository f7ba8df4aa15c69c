#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

/// Text from outside as it may stand in a one-line message: control bytes and bytes that are not UTF-8 as \xNN, cut after
/// `most` bytes (not inside a character).
std::string printable(std::string_view text, size_t most = 100);

}  // namespace tessera
