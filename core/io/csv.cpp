#include "tessera/core/io/csv.h"

#include <charconv>
#include <deque>
#include <vector>

#include "tessera/core/error.h"
#include "tessera/core/io/inflate.h"

namespace tessera {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

class Parser {
 public:
  Parser(std::string_view text, const std::string& origin, const CsvOptions& options)
      : text_(text), origin_(origin), options_(options), delimiter_(options.delimiter) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
  }

  void run(const std::function<void(const CsvRow&)>& row) {
    while (at_ < text_.size()) {
      const int64_t line = line_;
      if (skip_line()) continue;
      if (delimiter_ == 0) delimiter_ = guess_delimiter();
      read_row();
      if (width_ < 0) width_ = int64_t(fields_.size());
      check<IoError>(!options_.same_width || int64_t(fields_.size()) == width_,
                     "{}: line {} has {} fields, expected {} as before", origin_, line, fields_.size(), width_);
      row({line, fields_});
    }
  }

 private:
  // Passes a blank line or a comment.
  bool skip_line() {
    size_t at = at_;
    while (at < text_.size() && (is_blank(text_[at]) || text_[at] == '\r')) ++at;
    const bool blank = at >= text_.size() || text_[at] == '\n';
    const bool comment = options_.comment != 0 && text_[at_] == options_.comment;
    if (!blank && !comment) return false;
    const size_t end = text_.find('\n', at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++line_;
    return true;
  }

  char guess_delimiter() const {
    bool tab = false, semicolon = false, comma = false, quoted = false;
    for (size_t at = at_; at < text_.size() && (quoted || text_[at] != '\n'); ++at) {
      // A quote opens only at the start of a field.
      if (text_[at] == '"' &&
          (quoted || at == at_ || is_blank(text_[at - 1]) || text_[at - 1] == ',' || text_[at - 1] == ';'))
        quoted = !quoted;
      if (quoted) continue;
      tab |= text_[at] == '\t';
      semicolon |= text_[at] == ';';
      comma |= text_[at] == ',';
    }
    return tab ? '\t' : semicolon ? ';' : comma ? ',' : ' ';
  }

  bool at_line_end() const {
    return at_ >= text_.size() || text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }
  void pass_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_]) && text_[at_] != delimiter_) ++at_;
    if (delimiter_ == ' ')
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  void read_row() {
    fields_.clear();
    unquoted_.clear();
    for (;;) {
      pass_blanks();
      if (delimiter_ == ' ' && at_line_end()) break;
      fields_.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_field() : plain_field());
      if (delimiter_ == ' ') continue;
      if (at_line_end()) break;
      ++at_;  // the delimiter
    }
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size()) ++at_;
    ++line_;
  }

  std::string_view plain_field() {
    const size_t begin = at_;
    while (!at_line_end() && text_[at_] != delimiter_ && !(delimiter_ == ' ' && text_[at_] == '\t')) {
      check<IoError>(text_[at_] != '\0', "{}: line {} has a zero byte, expected text", origin_, line_);
      ++at_;
    }
    size_t end = at_;
    while (end > begin && is_blank(text_[end - 1])) --end;
    return text_.substr(begin, end - begin);
  }

  std::string_view quoted_field() {
    const int64_t line = line_;
    const size_t begin = ++at_;
    bool doubled = false;
    for (;; ++at_) {
      check<IoError>(at_ < text_.size(), "{}: line {} opens a quote that is never closed", origin_, line);
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') continue;
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
      doubled = true;
      ++at_;
    }
    std::string_view field = text_.substr(begin, at_ - begin);
    ++at_;
    pass_blanks();
    check<IoError>(at_line_end() || text_[at_] == delimiter_ || delimiter_ == ' ',
                   "{}: line {} has text after a closing quote", origin_, line_);
    if (!doubled) return field;
    std::string& plain = unquoted_.emplace_back();
    for (size_t i = 0; i < field.size(); ++i) {
      plain += field[i];
      if (field[i] == '"') ++i;
    }
    return plain;
  }

  std::string_view text_;
  const std::string& origin_;
  const CsvOptions& options_;
  char delimiter_;
  size_t at_ = 0;
  int64_t line_ = 1, width_ = -1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;
};

template <class T>
std::optional<T> parse(std::string_view field) {
  if (field.starts_with('+') && field.size() > 1 && field[1] != '-') field.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

}  // namespace

void parse_csv(std::string_view text, const std::string& origin, const CsvOptions& options,
               const std::function<void(const CsvRow&)>& row) {
  Parser(text, origin, options).run(row);
}

void read_csv(const std::string& path, const CsvOptions& options, const std::function<void(const CsvRow&)>& row) {
  const std::string text = read_plain_or_gzip(path, options.limit);
  parse_csv(text, path, options, row);
}

std::optional<int64_t> to_integer(std::string_view field) { return parse<int64_t>(field); }
std::optional<double> to_real(std::string_view field) { return parse<double>(field); }

}  // namespace tessera
