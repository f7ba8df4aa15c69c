#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Numbers as text, a row in each line: the form that the data sets of graphs share. Numbers are separated by a comma,
/// blanks or tabs; lines end in LF or CRLF, the last one needs no end; empty lines may stand at the end alone.
/// `origin` (a path, a member) starts every error text, and each names the line; all are IoError.
namespace tessera {

template <class T>
struct NumberLines {
  int64_t lines = 0, columns = 0;
  int64_t empty_at_end = 0;  ///< lines, which are not counted in `lines`
  std::vector<T> values;     ///< line by line

  T at(int64_t line, int64_t column = 0) const { return values[size_t(line * columns + column)]; }
};

/// Errors: something that is not an integer of 64 bits, an empty line before another, a line of another count than the
/// first, or than `columns` when that is not 0.
NumberLines<int64_t> read_integers(std::string_view text, const std::string& origin, int64_t columns = 0);

enum class Missing : uint8_t {
  refused,
  nan,  ///< an empty cell between commas, an empty line, and nan are NaN; infinities are refused
};

/// Errors: as above for numbers that are not finite floats.
NumberLines<float> read_reals(std::string_view text, const std::string& origin, Missing missing = Missing::refused);

/// Whether every number of the text is an integer: no more is looked at than it takes to know.
bool all_integers(std::string_view text);

}  // namespace tessera
