#include "tessera/datasets/graph_set/tu.h"

#include <algorithm>
#include <limits>

#include "tessera/core/error.h"
#include "tessera/datasets/graph_set/assemble.h"

namespace tessera {
namespace {

constexpr std::string_view kEdges = "_A.txt";

std::string prefix_of(const FileSource& files) {
  std::string prefix;
  for (const std::string& name : files.names())
    if (name.ends_with(kEdges)) {
      const std::string candidate = name.substr(0, name.size() - kEdges.size());
      if (prefix.empty() || candidate == files.name()) prefix = candidate;
    }
  return prefix;
}

class Reader {
 public:
  explicit Reader(FileSource& files) : files_(files), prefix_(prefix_of(files)) {}

  GraphSet read() {
    set_.name = prefix_;
    read_targets();
    read_indicator();
    check_targets();
    const NumberLines<float> attributes = optional_reals("_node_attributes.txt", nodes_, "nodes");
    if (attributes.columns > 0) set_.node_attributes = Tensor::from(attributes.values, {nodes_, attributes.columns});
    const NumberLines<int64_t> labels = optional_integers("_node_labels.txt", nodes_, "nodes");
    if (labels.columns > 0) set_node_labels(set_, labels, where("_node_labels.txt"));
    read_edges();
    set_.sha256 = files_.sha256();
    return std::move(set_);
  }

 private:
  bool has(const std::string& what) const { return files_.has(prefix_ + what); }
  std::string where(const std::string& what) const { return files_.where(prefix_ + what); }

  NumberLines<int64_t> integers(const std::string& what, int64_t columns) {
    return read_integers(files_.read(prefix_ + what), where(what), columns);
  }
  void check_lines(const std::string& what, int64_t lines, int64_t expected, const char* of) {
    check<IoError>(lines == expected, "{}: has {} lines, but there are {} {}", where(what), lines, expected, of);
  }
  NumberLines<float> optional_reals(const std::string& what, int64_t lines, const char* of) {
    if (!has(what)) return {};
    NumberLines<float> out = read_reals(files_.read(prefix_ + what), where(what));
    check_lines(what, out.lines, lines, of);
    return out;
  }
  NumberLines<int64_t> optional_integers(const std::string& what, int64_t lines, const char* of) {
    if (!has(what)) return {};
    NumberLines<int64_t> out = integers(what, 0);
    check_lines(what, out.lines, lines, of);
    return out;
  }

  void read_targets() {
    if (has("_graph_attributes.txt")) {
      const std::string what = "_graph_attributes.txt";
      const NumberLines<float> values = read_reals(files_.read(prefix_ + what), where(what), Missing::nan);
      targets_ = values.lines;
      set_.task = GraphTask::regression;
      set_.outputs = values.columns;
      set_.y = Tensor::from(values.values, {values.lines, values.columns});
      return;
    }
    const std::string what = "_graph_labels.txt";
    const NumberLines<int64_t> labels = integers(what, 0);
    targets_ = labels.lines;
    if (labels.columns <= 1) return set_classes(set_, labels.values);
    set_.task = GraphTask::binary;
    set_.outputs = labels.columns;
    set_.y = Tensor::empty({labels.lines, labels.columns});
    float* y = set_.y.mutable_data<float>();
    for (size_t i = 0; i < labels.values.size(); ++i) {
      check<IoError>(labels.values[i] == 0 || labels.values[i] == 1,
                     "{}: line {} has '{}', expected 0 or 1 where there are several columns", where(what),
                     int64_t(i) / labels.columns + 1, labels.values[i]);
      y[i] = float(labels.values[i]);
    }
  }

  void read_indicator() {
    const std::string what = "_graph_indicator.txt", origin = where(what), targets = prefix_ + target_file();
    const NumberLines<int64_t> graphs = integers(what, 1);
    nodes_ = graphs.lines;
    std::vector<int64_t> counts(static_cast<size_t>(targets_));
    int64_t last = 1;
    for (int64_t i = 0; i < nodes_; ++i) {
      const int64_t g = graphs.at(i);
      check<IoError>(g >= 1, "{}: line {} has the graph {}, expected 1 or more", origin, i + 1, g);
      check<IoError>(g >= last, "{}: line {} has the graph {} after graph {}, expected an ascending order", origin, i + 1, g,
                     last);
      check<IoError>(g <= targets_, "{}: line {} has the graph {}, but {} has {} lines", origin, i + 1, g, targets,
                     targets_);
      ++counts[size_t(g - 1)];
      last = g;
    }
    set_.node_offsets = offsets_of(counts, origin);
  }

  std::string target_file() const {
    return set_.task == GraphTask::regression ? "_graph_attributes.txt" : "_graph_labels.txt";
  }

  void check_targets() {
    check<IoError>(targets_ > 0, "{}: is empty, expected a line for each graph", where(target_file()));
  }

  void read_edges() {
    const std::string what = "_A.txt", origin = where(what);
    const NumberLines<int64_t> edges = integers(what, 2);
    std::vector<int32_t> graph_of(static_cast<size_t>(nodes_));
    const int64_t* offsets = set_.node_offsets.data<int64_t>();
    for (int64_t g = 0; g < targets_; ++g)
      std::fill(graph_of.begin() + offsets[g], graph_of.begin() + offsets[g + 1], int32_t(g));
    std::vector<int32_t> from, to;
    from.reserve(size_t(edges.lines));
    to.reserve(size_t(edges.lines));
    for (int64_t e = 0; e < edges.lines; ++e) {
      const int64_t a = edges.at(e, 0), b = edges.at(e, 1);
      for (const int64_t node : {a, b})
        check<IoError>(node >= 1 && node <= nodes_, "{}: line {} has the node {}, expected 1 to {}", origin, e + 1, node,
                       nodes_);
      const int32_t first = graph_of[size_t(a - 1)], second = graph_of[size_t(b - 1)];
      check<IoError>(first == second, "{}: line {} joins node {} of graph {} and node {} of graph {}", origin, e + 1, a,
                     first + 1, b, second + 1);
      from.push_back(int32_t(a - 1));
      to.push_back(int32_t(b - 1));
    }
    const std::string of = "edges in " + prefix_ + what;
    const NumberLines<float> attributes = optional_reals("_edge_attributes.txt", edges.lines, of.c_str());
    const NumberLines<int64_t> labels = optional_integers("_edge_labels.txt", edges.lines, of.c_str());
    tessera::set_edges(set_, from, to, joined_columns(attributes, labels, where("_edge_labels.txt")), Repeats::merged);
  }

  FileSource& files_;
  std::string prefix_;
  GraphSet set_;
  int64_t targets_ = 0, nodes_ = 0;
};

}  // namespace

bool is_tu(const FileSource& files) { return !prefix_of(files).empty(); }

GraphSet load_tu(FileSource& files) { return Reader(files).read(); }

}  // namespace tessera
