#include "tessera/datasets/graph_set/number_lines.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/core/error.h"
#include "tessera/core/printable.h"

namespace tessera {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Walks the fields of a text line by line.
class Fields {
 public:
  explicit Fields(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {
    if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;
  }

  /// The next line, without blanks at its ends; false after the last.
  bool next_line() {
    if (at_ == end_) return false;
    const void* found = std::memchr(at_, '\n', size_t(end_ - at_));
    const char* stop = found == nullptr ? end_ : static_cast<const char*>(found);
    line_ = {at_, size_t(stop - at_)};
    at_ = stop == end_ ? end_ : stop + 1;
    while (!line_.empty() && is_blank(line_.back())) line_.remove_suffix(1);
    while (!line_.empty() && is_blank(line_.front())) line_.remove_prefix(1);
    ++number_;
    cursor_ = line_.data();
    more_ = true;
    return true;
  }
  bool empty_line() const { return line_.empty(); }
  int64_t number() const { return number_; }

  /// The next field of the line; false after the last. A comma at the end is followed by an empty field.
  bool next(std::string_view& field) {
    if (!more_) return false;
    const char* stop = line_.data() + line_.size();
    while (cursor_ < stop && is_blank(*cursor_)) ++cursor_;
    const char* begin = cursor_;
    while (cursor_ < stop && *cursor_ != ',' && !is_blank(*cursor_)) ++cursor_;
    field = {begin, size_t(cursor_ - begin)};
    while (cursor_ < stop && is_blank(*cursor_)) ++cursor_;
    if (cursor_ == stop)
      more_ = false;
    else if (*cursor_ == ',')
      ++cursor_;
    return true;
  }

 private:
  const char *at_, *end_, *cursor_ = nullptr;
  std::string_view line_;
  int64_t number_ = 0;
  bool more_ = false;
};

bool parse(std::string_view field, int64_t& value) {
  if (!field.empty() && field[0] == '+') field.remove_prefix(1);
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc() && stop == field.data() + field.size();
}

bool parse(std::string_view field, float& value) {
  if (!field.empty() && field[0] == '+') field.remove_prefix(1);
  // Through double, so that a number too small for a float is rounded and not refused.
  double wide = 0;
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), wide);
  value = float(wide);
  return error == std::errc() && stop == field.data() + field.size();
}

template <class T>
NumberLines<T> read(std::string_view text, const std::string& origin, int64_t columns, Missing missing) {
  constexpr bool real = std::is_same_v<T, float>;
  NumberLines<T> out;
  out.columns = columns;
  Fields fields(text);
  int64_t empty = 0;  // the first of the empty lines just read
  const auto add_missing_lines = [&](int64_t until) {
    for (; empty != 0 && empty < until; ++empty) {
      out.values.push_back(T(std::numeric_limits<float>::quiet_NaN()));
      ++out.lines;
    }
    empty = 0;
  };
  while (fields.next_line()) {
    if (fields.empty_line()) {
      if (empty == 0) empty = fields.number();
      continue;
    }
    if (empty != 0) {
      // pandas writes a row whose only cell is missing as an empty line
      const bool cells = real && missing == Missing::nan && out.columns <= 1;
      check<IoError>(cells, "{}: line {} is empty, expected numbers", origin, empty);
      out.columns = 1;
      if constexpr (real) add_missing_lines(fields.number());
    }
    std::string_view field;
    int64_t count = 0;
    while (fields.next(field)) {
      T value{};
      bool good = parse(field, value);
      if constexpr (real) {
        if (missing == Missing::nan && field.empty()) {
          value = std::numeric_limits<float>::quiet_NaN();
          good = true;
        }
        good = good && (std::isfinite(value) || (missing == Missing::nan && std::isnan(value)));
      }
      if (!good)
        fail<IoError>("{}: line {} has '{}', expected {}", origin, fields.number(), printable(field),
                      real ? "a finite number" : "an integer");
      out.values.push_back(value);
      ++count;
    }
    if (out.columns == 0) out.columns = count;
    check<IoError>(count == out.columns, "{}: line {} has {} numbers, expected {}", origin, fields.number(), count,
                   out.columns);
    ++out.lines;
  }
  if (empty != 0) out.empty_at_end = fields.number() - empty + 1;
  return out;
}

}  // namespace

NumberLines<int64_t> read_integers(std::string_view text, const std::string& origin, int64_t columns) {
  return read<int64_t>(text, origin, columns, Missing::refused);
}

NumberLines<float> read_reals(std::string_view text, const std::string& origin, Missing missing) {
  return read<float>(text, origin, 0, missing);
}

bool all_integers(std::string_view text) {
  Fields fields(text);
  std::string_view field;
  int64_t value = 0;
  while (fields.next_line())
    while (!fields.empty_line() && fields.next(field))
      if (!parse(field, value)) return false;
  return true;
}

}  // namespace tessera
