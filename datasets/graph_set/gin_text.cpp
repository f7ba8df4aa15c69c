#include "tessera/datasets/graph_set/gin_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tessera/core/error.h"
#include "tessera/core/printable.h"
#include "tessera/datasets/graph_set/assemble.h"

namespace tessera {
namespace {

/// The name of the text, or nothing.
std::string text_of(const FileSource& files) {
  std::vector<std::string> candidates;
  bool folds = false;
  for (const std::string& name : files.names()) {
    folds = folds || name == "10fold_idx/";
    if (name == files.name() + ".txt") return name;
    if (name.ends_with(".txt")) candidates.push_back(name);
  }
  return folds && candidates.size() == 1 ? candidates[0] : "";
}

/// Numbers of a text, one after the other, with the lines they stand in.
class Numbers {
 public:
  Numbers(std::string_view text, std::string origin)
      : at_(text.data()), end_(text.data() + text.size()), origin_(std::move(origin)) {}

  int64_t line() const { return line_; }
  const std::string& origin() const { return origin_; }
  /// Goes to the next line that holds something. Errors: there is none.
  void next_line(const char* expected) {
    if (started_) {
      skip_blanks();
      check<IoError>(at_end_of_line(), "{}: line {} has more than {} before '{}'", origin_, line_, what_, rest());
    }
    started_ = true;
    what_ = expected;
    while (at_ != end_ && at_end_of_line()) skip_line_end();
    check<IoError>(at_ != end_, "{}: ends after line {}, expected {}", origin_, line_, expected);
  }
  /// Whether the line has another field.
  bool more() {
    skip_blanks();
    return !at_end_of_line();
  }
  int64_t integer() {
    int64_t value = 0;
    return parse(value, "an integer"), value;
  }
  float real() {
    double value = 0;
    parse(value, "a finite number");
    check<IoError>(std::fabs(value) <= std::numeric_limits<float>::max(), "{}: line {} has a number that is not finite",
                   origin_, line_);
    return float(value);
  }
  /// Errors: the text goes on.
  void expect_end() {
    skip_blanks();
    check<IoError>(at_end_of_line(), "{}: line {} has more than {} before '{}'", origin_, line_, what_, rest());
    while (at_ != end_) {
      skip_blanks();
      check<IoError>(at_end_of_line(), "{}: line {} comes after the last graph", origin_, line_);
      if (at_ != end_) skip_line_end();
    }
  }

 private:
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool at_end_of_line() {
    skip_blanks();
    return at_ == end_ || *at_ == '\n';
  }
  void skip_line_end() {
    if (at_ != end_) ++at_;
    ++line_;
    skip_blanks();
  }
  std::string rest() const {
    const char* stop = std::find_if(at_, end_, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
    return printable({at_, size_t(stop - at_)});
  }
  template <class T>
  void parse(T& value, const char* expected) {
    skip_blanks();
    check<IoError>(!at_end_of_line(), "{}: line {} ends too soon, expected {}", origin_, line_, what_);
    const auto [stop, error] = std::from_chars(at_, end_, value);
    const bool whole = stop == end_ || *stop == ' ' || *stop == '\t' || *stop == '\r' || *stop == '\n';
    if (error != std::errc() || !whole) fail<IoError>("{}: line {} has '{}', expected {}", origin_, line_, rest(), expected);
    at_ = stop;
  }

  const char *at_, *end_;
  std::string origin_;
  const char* what_ = "";
  int64_t line_ = 1;
  bool started_ = false;
};

Tensor ids_of(FileSource& files, const std::string& name, int64_t graphs) {
  const NumberLines<int64_t> lines = read_integers(files.read(name), files.where(name), 1);
  std::vector<int32_t> out;
  for (int64_t i = 0; i < lines.lines; ++i) {
    check<IoError>(lines.at(i) >= 0 && lines.at(i) < graphs, "{}: line {} has the graph {}, expected 0 to {}",
                   files.where(name), i + 1, lines.at(i), graphs - 1);
    out.push_back(int32_t(lines.at(i)));
  }
  return Tensor::from(out, {int64_t(out.size())});
}

}  // namespace

bool is_gin_text(const FileSource& files) { return !text_of(files).empty(); }

GraphSet load_gin_text(FileSource& files) {
  const std::string name = text_of(files);
  const std::string text = files.read(name);
  Numbers in(text, files.where(name));
  GraphSet set;
  set.name = name.substr(0, name.size() - 4);

  in.next_line("the number of graphs");
  const int64_t graphs = in.integer();
  check<IoError>(graphs >= 1 && graphs <= int64_t(text.size()), "{}: line 1 has {} graphs in {} bytes", in.origin(), graphs,
                 text.size());
  std::vector<int64_t> counts, labels;
  NumberLines<int64_t> tags{.columns = 1};
  NumberLines<float> attributes;
  std::vector<int32_t> from, to;
  for (int64_t g = 0; g < graphs; ++g) {
    in.next_line("a graph's number of nodes and label");
    const int64_t n = in.integer(), first = int64_t(tags.values.size());
    check<IoError>(n >= 0 && n <= int64_t(text.size()), "{}: line {} has {} nodes, expected a count", in.origin(), in.line(),
                   n);
    labels.push_back(in.integer());
    counts.push_back(n);
    check<IoError>(first + n <= std::numeric_limits<int32_t>::max(), "{}: has more than {} nodes", in.origin(),
                   std::numeric_limits<int32_t>::max());
    for (int64_t i = 0; i < n; ++i) {
      in.next_line("a node's tag, number of neighbours and neighbours");
      tags.values.push_back(in.integer());
      const int64_t neighbours = in.integer();
      for (int64_t k = 0; k < neighbours; ++k) {
        const int64_t other = in.integer();
        check<IoError>(other >= 0 && other < n, "{}: line {} has the neighbour {}, expected 0 to {}", in.origin(), in.line(),
                       other, n - 1);
        from.push_back(int32_t(first + other));
        to.push_back(int32_t(first + i));
      }
      int64_t width = 0;
      for (; in.more(); ++width) attributes.values.push_back(in.real());
      if (tags.lines == 0) attributes.columns = width;
      check<IoError>(width == attributes.columns, "{}: line {} has {} attributes, expected {} as before", in.origin(),
                     in.line(), width, attributes.columns);
      ++tags.lines;
    }
  }
  in.expect_end();

  set.node_offsets = offsets_of(counts, in.origin());
  set_classes(set, labels);
  if (std::adjacent_find(tags.values.begin(), tags.values.end(), std::not_equal_to<>()) != tags.values.end())
    set_node_labels(set, tags, in.origin());
  if (attributes.columns > 0) set.node_attributes = Tensor::from(attributes.values, {tags.lines, attributes.columns});
  set_edges(set, from, to, {}, Repeats::merged);
  const auto file = [](const char* part, int fold) {
    return std::string("10fold_idx/") + part + "_idx-" + std::to_string(fold) + ".txt";
  };
  int folds = 10;
  while (folds > 0 && !files.has(file("train", folds)) && !files.has(file("test", folds))) --folds;
  for (int fold = 1; fold <= folds; ++fold) {
    for (const char* part : {"train", "test"})
      check<IoError>(files.has(file(part, fold)), "{}: is missing", files.where(file(part, fold)));
    set.splits.push_back({ids_of(files, file("train", fold), graphs), Tensor::empty({0}, DType::i32),
                          ids_of(files, file("test", fold), graphs)});
    check_split(set.splits.back(), graphs, files.where(file("test", fold)));
  }
  set.sha256 = files.sha256();
  return set;
}

}  // namespace tessera
