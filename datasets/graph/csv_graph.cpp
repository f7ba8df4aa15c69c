#include "tessera/datasets/graph/csv_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "tessera/core/error.h"
#include "tessera/core/io/csv.h"
#include "tessera/core/io/file.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return out;
}

bool one_of(std::string_view field, std::initializer_list<const char*> names) {
  const std::string plain = lower(field);
  return std::find(names.begin(), names.end(), plain) != names.end();
}

bool is_id_name(std::string_view field) { return one_of(field, {"id", "node", "node_id", "name"}); }

using Numbers = std::unordered_map<std::string, int32_t>;

class NodeTable {
 public:
  NodeTable(const std::string& path, const CsvGraphOptions& options, CsvGraph& graph)
      : path_(path), options_(options), graph_(graph) {}

  Numbers& numbers() { return numbers_; }

  void read() {
    read_csv(path_, {.delimiter = options_.delimiter}, [&](const CsvRow& row) {
      if (columns_ < 0) {
        columns_ = int64_t(row.fields.size());
        if (is_header(row)) return set_header(row);
        check<IoError>(options_.id_column.empty() && options_.label_column.empty() && options_.split_column.empty(),
                       "{}: has no header, so no column '{}'", path_,
                       !options_.id_column.empty()      ? options_.id_column
                       : !options_.label_column.empty() ? options_.label_column
                                                        : options_.split_column);
        if (columns_ > 1) label_ = columns_ - 1;
        for (int64_t c = 0; c + 2 < columns_; ++c) graph_.feature_names.push_back(std::to_string(c));
      }
      add(row);
    });
    finish();
  }

 private:
  bool is_header(const CsvRow& row) const {
    if (options_.node_header != CsvHeader::detect) return options_.node_header == CsvHeader::yes;
    if (is_id_name(row.fields[0])) return true;
    return row.fields.size() > 2 && std::none_of(row.fields.begin() + 1, row.fields.end(),
                                                 [](std::string_view field) { return to_real(field).has_value(); });
  }

  // An earlier usual name goes before a later one: beside "label", "y" is a feature.
  int64_t column(const CsvRow& row, const std::string& wanted, std::initializer_list<const char*> usual) const {
    if (wanted.empty()) {
      for (const char* name : usual)
        for (size_t c = 0; c < row.fields.size(); ++c)
          if (lower(row.fields[c]) == name) return int64_t(c);
      return -1;
    }
    for (size_t c = 0; c < row.fields.size(); ++c)
      if (row.fields[c] == wanted) return int64_t(c);
    std::string list;
    for (const std::string_view field : row.fields) list.append(list.empty() ? "" : ", ").append(printable(field));
    fail<IoError>("{}: has no column '{}', only {}", path_, wanted, list);
  }

  void set_header(const CsvRow& row) {
    id_ = std::max<int64_t>(0, column(row, options_.id_column, {"id", "node", "node_id", "name"}));
    label_ = column(row, options_.label_column, {"label", "class", "y", "target"});
    split_ = column(row, options_.split_column, {"split"});
    has_split_ = split_ >= 0;
    for (int64_t c = 0; c < columns_; ++c)
      if (is_feature(c)) graph_.feature_names.emplace_back(row.fields[size_t(c)]);
  }

  bool is_feature(int64_t c) const { return c != id_ && c != label_ && c != split_; }

  void add(const CsvRow& row) {
    const int32_t number = int32_t(lines_.size());
    const std::string_view name = row.fields[size_t(id_)];
    check<IoError>(!name.empty(), "{}: line {} has an empty node id", path_, row.line);
    const auto [found, is_new] = numbers_.emplace(name, number);
    check<IoError>(is_new, "{}: lines {} and {} are both of node '{}'", path_, is_new ? 0 : lines_[size_t(found->second)],
                   row.line, printable(name));
    check<IoError>(number < INT32_MAX, "{}: has more than 2^31 - 1 nodes", path_);
    lines_.push_back(row.line);
    graph_.node_ids.emplace_back(name);
    for (int64_t c = 0; c < columns_; ++c) {
      const std::string_view field = row.fields[size_t(c)];
      if (c == label_) {
        check<IoError>(lower(field) != "nan",
                       "{}: line {} has the label '{}', expected a class, or nothing for a node without", path_, row.line,
                       printable(field));
        labels_.emplace_back(field);
      } else if (c == split_) {
        const std::string part = lower(field);
        const int which = part == "train" ? 0 : part == "valid" || part == "val" ? 1 : part == "test" ? 2 : -1;
        check<IoError>(which >= 0 || part.empty(), "{}: line {} has the split '{}', expected train, valid, test or nothing",
                       path_, row.line, printable(field));
        if (which >= 0) parts_[which].push_back(number);
      } else if (is_feature(c)) {
        const std::optional<double> value = to_real(field);
        check<IoError>(value && std::fabs(*value) <= std::numeric_limits<float>::max(),
                       "{}: line {} has '{}' in column {}, expected a finite number", path_, row.line, printable(field),
                       c + 1);
        features_.push_back(float(*value));
      }
    }
  }

  void finish() {
    NodeDataset& data = graph_.data;
    data.num_nodes = int64_t(lines_.size());
    data.num_features = int64_t(graph_.feature_names.size());
    if (data.num_features > 0) data.features = Tensor::from(features_, {data.num_nodes, data.num_features});
    set_classes();
    if (has_split_) data.splits.push_back({ids(parts_[0]), ids(parts_[1]), ids(parts_[2])});
  }

  void set_classes() {
    NodeDataset& data = graph_.data;
    std::vector<int32_t> numbered(lines_.size(), -1);
    if (label_ >= 0) {
      std::vector<std::string>& names = graph_.class_names;
      names = labels_;
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      if (!names.empty() && names.front().empty()) names.erase(names.begin());
      if (std::all_of(names.begin(), names.end(), [](const std::string& n) { return to_integer(n).has_value(); }))
        std::stable_sort(names.begin(), names.end(),
                         [](const std::string& a, const std::string& b) { return *to_integer(a) < *to_integer(b); });
      Numbers classes;
      for (size_t c = 0; c < names.size(); ++c) classes.emplace(names[c], int32_t(c));
      for (size_t i = 0; i < labels_.size(); ++i)
        if (!labels_[i].empty()) numbered[i] = classes.at(labels_[i]);
    }
    data.labels = ids(numbered);
    data.num_classes = int64_t(graph_.class_names.size());
  }

  const std::string& path_;
  const CsvGraphOptions& options_;
  CsvGraph& graph_;
  int64_t columns_ = -1, id_ = 0, label_ = -1, split_ = -1;  // the last three are columns; -1 for none
  bool has_split_ = false;
  Numbers numbers_;
  std::vector<int64_t> lines_;
  std::vector<float> features_;
  std::vector<std::string> labels_;
  std::vector<int32_t> parts_[3];
};

}  // namespace

CsvGraph load_csv_graph(const std::string& edges_path, const std::string& nodes_path, const CsvGraphOptions& options) {
  CsvGraph graph;
  NodeTable table(nodes_path, options, graph);
  const bool listed = !nodes_path.empty();
  if (listed) table.read();

  std::vector<int32_t> from, to;
  bool first = true;
  read_csv(edges_path, {.delimiter = options.delimiter, .comment = '#', .same_width = false}, [&](const CsvRow& row) {
    check<IoError>(row.fields.size() >= 2, "{}: line {} has one field, expected the two ends of an edge", edges_path,
                   row.line);
    if (std::exchange(first, false)) {
      const bool named =
          one_of(row.fields[0], {"src", "source", "from", "u"}) && one_of(row.fields[1], {"dst", "target", "to", "v"});
      if (options.edge_header == CsvHeader::yes || (options.edge_header == CsvHeader::detect && named)) return;
    }
    for (int end = 0; end < 2; ++end) {
      const std::string id(row.fields[size_t(end)]);
      check<IoError>(!id.empty(), "{}: line {} has an empty node id", edges_path, row.line);
      auto found = table.numbers().find(id);
      if (found == table.numbers().end()) {
        check<IoError>(!listed, "{}: line {} has the node '{}', which {} does not have{}", edges_path, row.line,
                       printable(id), nodes_path, row.line == 1 ? " (if the line is a header, say so)" : "");
        found = table.numbers().emplace(id, int32_t(graph.node_ids.size())).first;
        graph.node_ids.push_back(id);
      }
      (end == 0 ? from : to).push_back(found->second);
    }
  });
  if (!listed) {
    graph.data.num_nodes = int64_t(graph.node_ids.size());
    graph.data.labels = ids(std::vector<int32_t>(graph.node_ids.size(), -1));
  }
  set_edges(graph.data, ids(from), ids(to), edges_path);

  std::string name = edges_path.substr(edges_path.rfind('/') + 1);
  graph.data.name = name.substr(0, name.find('.'));
  std::vector<std::string> files{edges_path};
  if (listed) files.push_back(nodes_path);
  graph.data.sha256 = sha256_of_files(files);
  return graph;
}

}  // namespace tessera
