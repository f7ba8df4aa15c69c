#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

struct CsvOptions {
  char delimiter = 0;                  ///< 0: the first of tab, ';', ',' that the first row has outside quotes, else blanks
  char comment = 0;                    ///< lines that start with it are skipped; 0: there are none
  bool same_width = true;              ///< a row of another number of fields than the first is an error
  uint64_t limit = uint64_t{4} << 30;  ///< bytes, after decompression
};

/// One row; the fields hold until the next.
struct CsvRow {
  int64_t line = 0;  ///< of its start in the file, from 1
  std::span<const std::string_view> fields;
};

/// Calls `row` for every row of a text table, plain or gzip. Blank lines are skipped; LF and CRLF end a line, the last one
/// needs no end; a UTF-8 byte order mark is dropped; blanks around a field do not count. A field in double quotes may hold
/// delimiters, line ends and doubled quotes. With blanks as the delimiter any run of blanks or tabs separates.
/// Errors: IoError with path and line for a row of another width, an open quote, a zero byte.
void read_csv(const std::string& path, const CsvOptions& options, const std::function<void(const CsvRow&)>& row);

/// The same from memory; `origin` starts every error text.
void parse_csv(std::string_view text, const std::string& origin, const CsvOptions& options,
               const std::function<void(const CsvRow&)>& row);

/// A whole field as a number; empty when it is not one, or is beyond the type. "nan" and "inf" are numbers of double.
std::optional<int64_t> to_integer(std::string_view field);
std::optional<double> to_real(std::string_view field);

}  // namespace tessera
