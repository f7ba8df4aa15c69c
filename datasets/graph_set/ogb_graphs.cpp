#include "tessera/datasets/graph_set/ogb_graphs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tessera/core/error.h"
#include "tessera/datasets/graph_set/assemble.h"

namespace tessera {
namespace {

struct Listed {
  const char* name;
  GraphTask task;
  const char *metric, *split;
  bool both_ways = true;
};

constexpr Listed kListed[] = {
    {"ogbg-molbace", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-molbbbp", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-molclintox", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-molmuv", GraphTask::binary, "ap", "scaffold"},
    {"ogbg-molpcba", GraphTask::binary, "ap", "scaffold"},
    {"ogbg-molsider", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-moltox21", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-moltoxcast", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-molhiv", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-molesol", GraphTask::regression, "rmse", "scaffold"},
    {"ogbg-molfreesolv", GraphTask::regression, "rmse", "scaffold"},
    {"ogbg-mollipo", GraphTask::regression, "rmse", "scaffold"},
    {"ogbg-molchembl", GraphTask::binary, "roc-auc", "scaffold"},
    {"ogbg-ppa", GraphTask::classes, "accuracy", "species"},
};

class Reader {
 public:
  Reader(FileSource& files, const std::string& name) : files_(files) {
    set_.name = name;
    for (const Listed& listed : kListed)
      if (name == listed.name) listed_ = &listed;
    check<Unsupported>(name != "ogbg-code2", "{}: the labels of ogbg-code2 are words, which no model here tells",
                       files.path());
  }

  GraphSet read() {
    const Table nodes = integers("num-node-list"), edges = integers("num-edge-list");
    graphs_ = nodes.numbers.lines;
    nodes_where_ = nodes.where;
    check_lines(edges, graphs_, "graphs");
    check<IoError>(graphs_ > 0, "{}: is empty, expected a line for each graph", nodes.where);
    set_.node_offsets = offsets_of(nodes.numbers.values, nodes.where);
    num_nodes_ = set_.node_offsets.data<int64_t>()[graphs_];
    if (Tensor x = features("node-feat", num_nodes_, "nodes"); x.defined()) {
      set_.num_features = x.dim(1);
      if (x.dtype() == DType::f32) set_.node_attributes = x;
      set_.x = std::move(x);
    }
    read_edges(edges);
    read_labels();
    read_splits();
    set_.metric = listed_ != nullptr ? listed_->metric : "";
    set_.sha256 = files_.sha256();
    return std::move(set_);
  }

 private:
  struct Table {
    std::string where;
    NumberLines<int64_t> numbers;
  };

  /// The file's name with what it ends in.
  std::string find(const std::string& what, bool needed = true) const {
    for (const char* end : {".csv.gz", ".csv"})
      if (files_.has(what + end)) return what + end;
    check<IoError>(!needed, "{}: is missing", files_.where(what + ".csv.gz"));
    return {};
  }
  Table integers(const std::string& what) {
    const std::string name = find("raw/" + what);
    return {files_.where(name), read_integers(files_.read(name), files_.where(name), 1)};
  }
  static void check_lines(const Table& table, int64_t lines, const char* of) {
    check<IoError>(table.numbers.lines == lines, "{}: has {} lines, but there are {} {}", table.where, table.numbers.lines,
                   lines, of);
  }

  Tensor features(const std::string& what, int64_t lines, const char* of) {
    const std::string name = find("raw/" + what, set_.name.starts_with("ogbg-mol"));
    if (name.empty()) return {};
    const std::string text = files_.read(name), where = files_.where(name);
    const auto finish = [&](const auto& numbers) {
      check<IoError>(numbers.lines == lines, "{}: has {} lines, but there are {} {}", where, numbers.lines, lines, of);
      return numbers.lines == 0 ? Tensor() : Tensor::from(numbers.values, {numbers.lines, numbers.columns});
    };
    return all_integers(text) ? finish(read_integers(text, where)) : finish(read_reals(text, where));
  }

  void read_edges(const Table& counts) {
    const std::string name = find("raw/edge"), where = files_.where(name);
    const NumberLines<int64_t> edges = read_integers(files_.read(name), where, 2);
    int64_t total = 0;
    for (int64_t g = 0; g < graphs_; ++g) {
      check<IoError>(counts.numbers.at(g) >= 0 && counts.numbers.at(g) <= edges.lines - total,
                     "{}: line {} has {} edges, but {} are left in {}", counts.where, g + 1, counts.numbers.at(g),
                     edges.lines - total, name);
      total += counts.numbers.at(g);
    }
    check<IoError>(total == edges.lines, "{}: has {} lines, but {} has {} edges in all", where, edges.lines, counts.where,
                   total);
    // Sets without features say how many nodes they have in one number alone.
    check<IoError>(set_.x.defined() || num_nodes_ <= 1'000'000 + 64 * (graphs_ + total),
                   "{}: has {} nodes in all, without features and with {} edges", nodes_where_, num_nodes_, total);
    const Tensor given = features("edge-feat", edges.lines, "edges");
    const bool both = listed_ == nullptr || listed_->both_ways;
    std::vector<int32_t> from, to;
    std::vector<int64_t> row;  // of `given` for each edge
    const int64_t* offsets = set_.node_offsets.data<int64_t>();
    for (int64_t g = 0, e = 0; g < graphs_; ++g) {
      const int64_t n = offsets[g + 1] - offsets[g];
      for (const int64_t end = e + counts.numbers.at(g); e < end; ++e) {
        const int64_t a = edges.at(e, 0), b = edges.at(e, 1);
        for (const int64_t node : {a, b})
          check<IoError>(node >= 0 && node < n, "{}: line {} has the node {}, but graph {} has {} nodes", where, e + 1, node,
                         g, n);
        const int32_t first = int32_t(offsets[g] + a), second = int32_t(offsets[g] + b);
        from.push_back(first);
        to.push_back(second);
        row.push_back(e);
        if (!both) continue;
        from.push_back(second);
        to.push_back(first);
        row.push_back(e);
      }
    }
    Tensor attributes;
    if (given.defined()) {
      const size_t bytes = size_t(given.dim(1)) * size_of(given.dtype());
      attributes = Tensor::empty({int64_t(row.size()), given.dim(1)}, given.dtype());
      char* into = static_cast<char*>(attributes.mutable_raw());
      for (size_t k = 0; k < row.size(); ++k)
        std::copy_n(static_cast<const char*>(given.raw()) + size_t(row[k]) * bytes, bytes, into + k * bytes);
    }
    tessera::set_edges(set_, from, to, attributes, Repeats::kept);
  }

  void read_labels() {
    const std::string name = find("raw/graph-label"), where = files_.where(name);
    NumberLines<float> labels = read_reals(files_.read(name), where, Missing::nan);
    for (; labels.columns == 1 && labels.lines < graphs_ && labels.empty_at_end > 0; --labels.empty_at_end, ++labels.lines)
      labels.values.push_back(std::numeric_limits<float>::quiet_NaN());
    check<IoError>(labels.lines == graphs_, "{}: has {} lines, but there are {} graphs", where, labels.lines, graphs_);
    const auto all = [&](auto good) { return std::all_of(labels.values.begin(), labels.values.end(), good); };
    const auto yes_or_no = [](float v) { return v == 0 || v == 1 || std::isnan(v); };
    const auto is_class = [](float v) { return v >= 0 && v < 1e6F && v == std::floor(v); };
    set_.task = listed_ != nullptr                     ? listed_->task
                : all(yes_or_no)                       ? GraphTask::binary
                : labels.columns == 1 && all(is_class) ? GraphTask::classes
                                                       : GraphTask::regression;
    for (size_t i = 0; i < labels.values.size(); ++i) {
      const float value = labels.values[i];
      check<IoError>(set_.task != GraphTask::binary || yes_or_no(value), "{}: line {} has {}, expected 0, 1 or nothing",
                     where, int64_t(i) / labels.columns + 1, double(value));
      check<IoError>(set_.task != GraphTask::classes || is_class(value), "{}: line {} has {}, expected a class", where,
                     i + 1, double(value));
    }
    if (set_.task == GraphTask::classes) return set_classes(set_, {labels.values.begin(), labels.values.end()});
    set_.outputs = labels.columns;
    set_.y = Tensor::from(labels.values, {labels.lines, labels.columns});
  }

  void read_splits() {
    std::vector<std::string> kinds;
    for (const std::string& name : files_.names("split"))
      if (name.back() == '/') kinds.push_back(name.substr(0, name.size() - 1));
    if (listed_ != nullptr && std::find(kinds.begin(), kinds.end(), listed_->split) != kinds.end()) kinds = {listed_->split};
    for (const std::string& kind : kinds) {
      const auto part = [&](const char* what) {
        const std::string name = find("split/" + kind + "/" + what);
        const NumberLines<int64_t> ids = read_integers(files_.read(name), files_.where(name), 1);
        std::vector<int32_t> out;
        for (int64_t i = 0; i < ids.lines; ++i) {
          check<IoError>(ids.at(i) >= 0 && ids.at(i) < graphs_, "{}: line {} has the graph {}, expected 0 to {}",
                         files_.where(name), i + 1, ids.at(i), graphs_ - 1);
          out.push_back(int32_t(ids.at(i)));
        }
        return Tensor::from(out, {int64_t(out.size())});
      };
      GraphSplit split;
      split.train = part("train");
      split.valid = part("valid");
      split.test = part("test");
      check_split(split, graphs_, files_.where("split/" + kind));
      set_.splits.push_back(std::move(split));
    }
  }

  FileSource& files_;
  GraphSet set_;
  const Listed* listed_ = nullptr;
  std::string nodes_where_;
  int64_t graphs_ = 0, num_nodes_ = 0;
};

}  // namespace

bool is_ogb_graphs(const FileSource& files) {
  return files.has("raw/num-node-list.csv.gz") || files.has("raw/num-node-list.csv");
}

GraphSet load_ogb_graphs(FileSource& files, const std::string& name) { return Reader(files, name).read(); }

}  // namespace tessera
