#include "tessera/datasets/graph_set/assemble.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tessera/core/error.h"

namespace tessera {
namespace {

constexpr int64_t kMostLabels = 100'000;

/// Smallest of each column, and how many values there are from it to the largest.
struct LabelRange {
  std::vector<int64_t> least, values;
};

LabelRange range_of(const NumberLines<int64_t>& labels, const std::string& origin) {
  LabelRange out;
  for (int64_t c = 0; c < labels.columns; ++c) {
    int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
    for (int64_t i = 0; i < labels.lines; ++i) {
      least = std::min(least, labels.at(i, c));
      most = std::max(most, labels.at(i, c));
    }
    if (labels.lines == 0) least = most = 0;
    check<IoError>(uint64_t(most) - uint64_t(least) < uint64_t(kMostLabels),
                   "{}: has labels from {} to {}, expected at most {} different ones", origin, least, most, kMostLabels);
    out.least.push_back(least);
    out.values.push_back(most - least + 1);
  }
  return out;
}

}  // namespace

Tensor offsets_of(const std::vector<int64_t>& counts, const std::string& origin) {
  Tensor out = Tensor::empty({int64_t(counts.size()) + 1}, DType::i64);
  int64_t* offsets = out.mutable_data<int64_t>();
  offsets[0] = 0;
  for (size_t g = 0; g < counts.size(); ++g) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    check<IoError>(counts[g] >= 0, "{}: line {} is {}, expected a count of nodes", origin, g + 1, counts[g]);
    check<IoError>(counts[g] <= kMost - offsets[g], "{}: has more than {} nodes", origin, kMost);
    offsets[g + 1] = offsets[g] + counts[g];
  }
  return out;
}

void set_edges(GraphSet& set, const std::vector<int32_t>& from, const std::vector<int32_t>& to, const Tensor& attributes,
               Repeats repeats) {
  const int64_t graphs = set.num_graphs(), edges = int64_t(from.size());
  const int64_t* nodes = set.node_offsets.data<int64_t>();
  const int64_t n = nodes[graphs];

  // A counting sort by end, then each node's few edges by beginning.
  std::vector<int64_t> start(size_t(n) + 1);
  for (const int32_t node : to) ++start[size_t(node) + 1];
  for (size_t i = 0; i < size_t(n); ++i) start[i + 1] += start[i];
  std::vector<int64_t> order(static_cast<size_t>(edges)), next(start.begin(), start.end() - 1);
  for (int64_t e = 0; e < edges; ++e) order[size_t(next[size_t(to[size_t(e)])]++)] = e;

  set.rowptr = Tensor::empty({n + 1}, DType::i64);
  int64_t* rows = set.rowptr.mutable_data<int64_t>();
  rows[0] = 0;
  std::vector<int32_t> src;
  src.reserve(size_t(edges));
  std::vector<int64_t> kept, merged_into;  // positions in the list; where each edge's values go
  const bool values = attributes.defined();
  if (values) kept.reserve(size_t(edges));
  if (values) merged_into.resize(size_t(edges), -1);
  const auto before = [&](int64_t a, int64_t b) {
    return from[size_t(a)] != from[size_t(b)] ? from[size_t(a)] < from[size_t(b)] : a < b;
  };
  set.loops_left_out = set.edges_merged = 0;
  for (int64_t g = 0; g < graphs; ++g)
    for (int64_t i = nodes[g]; i < nodes[g + 1]; ++i) {
      const auto begin = order.begin() + start[size_t(i)], end = order.begin() + start[size_t(i) + 1];
      if (!std::is_sorted(begin, end, before)) std::sort(begin, end, before);
      int32_t last = -1;
      for (auto e = begin; e != end; ++e) {
        const int32_t beginning = from[size_t(*e)];
        if (repeats == Repeats::merged && beginning == int32_t(i)) {
          ++set.loops_left_out;
          continue;
        }
        if (repeats == Repeats::merged && beginning == last) {
          ++set.edges_merged;
        } else {
          src.push_back(beginning - int32_t(nodes[g]));
          if (values) kept.push_back(*e);
        }
        if (values) merged_into[size_t(*e)] = int64_t(src.size()) - 1;
        last = beginning;
      }
      rows[i + 1] = int64_t(src.size());
    }
  set.src = Tensor::from(src, {int64_t(src.size())});
  set.edge_attr = {};
  if (!values) return;

  const int64_t width = attributes.dim(1);
  set.edge_attr = Tensor::empty({int64_t(kept.size()), width}, attributes.dtype());
  const size_t row = size_t(width) * size_of(attributes.dtype());
  char* into = static_cast<char*>(set.edge_attr.mutable_raw());
  for (size_t k = 0; k < kept.size(); ++k)
    std::memcpy(into + k * row, static_cast<const char*>(attributes.raw()) + size_t(kept[k]) * row, row);
  if (set.edges_merged == 0 || attributes.dtype() != DType::f32) return;
  float* sums = set.edge_attr.mutable_data<float>();
  for (int64_t e = 0; e < edges; ++e)
    if (const int64_t k = merged_into[size_t(e)]; k >= 0 && kept[size_t(k)] != e)
      for (int64_t c = 0; c < width; ++c) sums[k * width + c] += attributes.data<float>()[e * width + c];
}

void set_classes(GraphSet& set, const std::vector<int64_t>& labels) {
  std::vector<int64_t> distinct = labels;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  set.task = GraphTask::classes;
  set.outputs = int64_t(distinct.size());
  set.y = Tensor::empty({int64_t(labels.size())}, DType::i32);
  int32_t* y = set.y.mutable_data<int32_t>();
  for (const int64_t label : labels)
    *y++ = int32_t(std::lower_bound(distinct.begin(), distinct.end(), label) - distinct.begin());
  set.class_names.clear();
  for (const int64_t label : distinct) set.class_names.push_back(std::to_string(label));
}

void set_node_labels(GraphSet& set, const NumberLines<int64_t>& labels, const std::string& origin) {
  const LabelRange range = range_of(labels, origin);
  set.node_label_values = range.values;
  set.node_labels = Tensor::empty({labels.lines, labels.columns}, DType::i32);
  int32_t* into = set.node_labels.mutable_data<int32_t>();
  for (int64_t i = 0; i < labels.lines; ++i)
    for (int64_t c = 0; c < labels.columns; ++c) *into++ = int32_t(labels.at(i, c) - range.least[size_t(c)]);
}

Tensor joined_columns(const NumberLines<float>& reals, const NumberLines<int64_t>& labels, const std::string& origin) {
  if (reals.columns + labels.columns == 0) return {};
  const LabelRange range = range_of(labels, origin);
  int64_t width = reals.columns;
  for (const int64_t values : range.values) width += values;
  const int64_t lines = std::max(reals.lines, labels.lines);
  check<IoError>(width <= (int64_t{1} << 31) / std::max<int64_t>(1, lines),
                 "{}: has {} columns with one for each label, too many for {} lines", origin, width, lines);
  Tensor out = Tensor::empty({lines, width});
  float* row = out.mutable_data<float>();
  for (int64_t i = 0; i < lines; ++i, row += width) {
    std::fill_n(row, width, 0.0F);
    for (int64_t c = 0; c < reals.columns; ++c) row[c] = reals.at(i, c);
    int64_t first = reals.columns;
    for (int64_t c = 0; c < labels.columns; ++c) {
      row[first + labels.at(i, c) - range.least[size_t(c)]] = 1;
      first += range.values[size_t(c)];
    }
  }
  return out;
}

void check_split(const GraphSplit& split, int64_t graphs, const std::string& origin) {
  std::vector<bool> seen(static_cast<size_t>(graphs));
  for (const Tensor& part : {split.train, split.valid, split.test})
    for (const int32_t graph : part.span<int32_t>()) {
      check<IoError>(!seen[size_t(graph)], "{}: graph {} is in the split twice", origin, graph);
      seen[size_t(graph)] = true;
    }
}

}  // namespace tessera
