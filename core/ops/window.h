#pragma once

#include <cstdint>

namespace tessera {

/// A number for the rows and one for the columns of an image; one number serves both.
struct Pair {
  int64_t rows, columns;
  constexpr Pair(int64_t both) : rows(both), columns(both) {}
  constexpr Pair(int64_t r, int64_t c) : rows(r), columns(c) {}
  bool operator==(const Pair&) const = default;
};

/// How many windows of `kernel` taps, `dilation` apart, fit into `size` elements with `padding` more at both ends, when each
/// starts `stride` after the last; 0 when not even one does.
constexpr int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t room = size + 2 * padding - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace tessera
