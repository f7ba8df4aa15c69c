#include "tessera/datasets/graph_set/graph_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tessera/core/error.h"

namespace tessera {
namespace {

Tensor out_degrees(const GraphSet& set) {
  const int64_t graphs = set.num_graphs();
  Tensor out = Tensor::empty({set.num_nodes()}, DType::i32);
  int32_t* degree = out.mutable_data<int32_t>();
  std::fill_n(degree, set.num_nodes(), 0);
  const int64_t *nodes = set.node_offsets.data<int64_t>(), *rows = set.rowptr.data<int64_t>();
  const int32_t* src = set.src.data<int32_t>();
  for (int64_t g = 0; g < graphs; ++g)
    for (int64_t k = rows[nodes[g]]; k < rows[nodes[g + 1]]; ++k) ++degree[nodes[g] + src[k]];
  return out;
}

void set_degree_features(GraphSet& set) {
  constexpr int32_t kMostColumns = 1000;  // PyG's benchmark/kernel/datasets.py
  Tensor degrees = out_degrees(set);
  const auto d = degrees.span<int32_t>();
  const int32_t most = d.empty() ? 0 : *std::max_element(d.begin(), d.end());
  if (most < kMostColumns) {
    set.ones = degrees.view_as({set.num_nodes(), 1});
    set.num_features = most + 1;
    return;
  }
  double sum = 0, squares = 0;
  for (const int32_t value : d) sum += value;
  const double mean = sum / double(d.size());
  for (const int32_t value : d) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / double(d.size() - 1));
  set.x = Tensor::empty({set.num_nodes(), 1});
  float* x = set.x.mutable_data<float>();
  for (const int32_t value : d) *x++ = float((value - mean) / deviation);
  set.num_features = 1;
}

void set_label_features(GraphSet& set, int64_t first_column) {
  const int64_t n = set.num_nodes(), columns = set.node_labels.dim(1);
  set.ones = Tensor::empty({n, columns}, DType::i32);
  int32_t* ones = set.ones.mutable_data<int32_t>();
  const int32_t* labels = set.node_labels.data<int32_t>();
  std::vector<int64_t> first(1, first_column);
  for (const int64_t values : set.node_label_values) first.push_back(first.back() + values);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < columns; ++k) *ones++ = int32_t(first[size_t(k)]) + *labels++;
  set.num_features = first.back();
}

void copy_rows(const Tensor& from, int64_t first, int64_t count, void* into, int64_t at) {
  if (count == 0) return;  // an empty tensor may have no memory
  const size_t row = size_t(from.dim(1)) * size_of(from.dtype());
  std::memcpy(static_cast<char*>(into) + size_t(at) * row, static_cast<const char*>(from.raw()) + size_t(first) * row,
              size_t(count) * row);
}

}  // namespace

int64_t GraphSet::nodes_of(int64_t graph) const {
  const int64_t* nodes = node_offsets.data<int64_t>();
  return nodes[graph + 1] - nodes[graph];
}

int64_t GraphSet::edges_of(int64_t graph) const {
  const int64_t *nodes = node_offsets.data<int64_t>(), *rows = rowptr.data<int64_t>();
  return rows[nodes[graph + 1]] - rows[nodes[graph]];
}

GraphSample GraphSet::sample(std::span<const int32_t> ids) const {
  check(num_features > 0 && (x.defined() || ones.defined()), "graph_set: {} has no features yet: choose_features", name);
  const int64_t count = int64_t(ids.size()), graphs = num_graphs();
  const int64_t *nodes = node_offsets.data<int64_t>(), *rows = rowptr.data<int64_t>();

  Tensor offsets = Tensor::empty({count + 1}, DType::i64), edge_offsets = Tensor::empty({count + 1}, DType::i64);
  int64_t *to_node = offsets.mutable_data<int64_t>(), *to_edge = edge_offsets.mutable_data<int64_t>();
  to_node[0] = to_edge[0] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t g = ids[size_t(i)];
    check(g >= 0 && g < graphs, "graph_set: id {} at position {} is outside [0, {})", g, i, graphs);
    to_node[i + 1] = to_node[i] + nodes_of(g);
    to_edge[i + 1] = to_edge[i] + edges_of(g);
  }
  const int64_t n = to_node[count], m = to_edge[count];

  GraphSample out;
  Tensor new_rows = Tensor::empty({n + 1}, DType::i64), col = Tensor::empty({m}, DType::i32);
  int64_t* new_row = new_rows.mutable_data<int64_t>();
  int32_t* new_col = col.mutable_data<int32_t>();
  new_row[0] = 0;
  if (x.defined() && x.dtype() == DType::i64)
    out.x = Tensor::empty({n, num_features}, DType::i64);
  else
    out.x = Tensor::empty({n, num_features});
  const int64_t width = x.defined() ? x.dim(1) : 0;
  float* values = ones.defined() || width < num_features ? out.x.mutable_data<float>() : nullptr;
  if (edge_attr.defined()) out.edge_attr = Tensor::empty({m, edge_attr.dim(1)}, edge_attr.dtype());
  const bool classes = task == GraphTask::classes;
  if (y.defined()) out.y = classes ? Tensor::empty({count}, DType::i32) : Tensor::empty({count, outputs});

  for (int64_t i = 0; i < count; ++i) {
    const int64_t g = ids[size_t(i)], first = nodes[g], size = nodes[g + 1] - first, first_edge = rows[first];
    const int64_t at = to_node[i], edge_at = to_edge[i], edges = to_edge[i + 1] - edge_at;
    for (int64_t k = 1; k <= size; ++k) new_row[at + k] = rows[first + k] - first_edge + edge_at;
    const int32_t* from = src.data<int32_t>() + first_edge;
    for (int64_t k = 0; k < edges; ++k) new_col[edge_at + k] = from[k] + int32_t(at);
    if (edge_attr.defined()) copy_rows(edge_attr, first_edge, edges, out.edge_attr.mutable_raw(), edge_at);
    if (values == nullptr) {
      copy_rows(x, first, size, out.x.mutable_raw(), at);
    } else {
      float* row = values + at * num_features;
      const int64_t hot = ones.defined() ? ones.dim(1) : 0;
      const int32_t* columns = hot > 0 ? ones.data<int32_t>() + first * hot : nullptr;
      const float* dense = width > 0 ? x.data<float>() + first * width : nullptr;
      std::fill_n(row, size * num_features, 0.0F);
      for (int64_t k = 0; k < size; ++k, row += num_features) {
        for (int64_t c = 0; c < width; ++c) row[c] = *dense++;
        for (int64_t c = 0; c < hot; ++c) row[*columns++] = 1;
      }
    }
    if (!y.defined()) continue;
    if (classes)
      out.y.mutable_data<int32_t>()[i] = y.data<int32_t>()[g];
    else
      copy_rows(y, g, 1, out.y.mutable_raw(), i);
  }
  out.batch = {Graph::from_csr(new_rows, col, n), edge_offsets, SegmentPlan::from_offsets(offsets)};
  return out;
}

void choose_features(GraphSet& set, GraphFeatures which) {
  using Features = GraphFeatures;
  const bool has_labels = set.node_labels.defined(), has_attributes = set.node_attributes.defined();
  if (set.x.defined() && set.x.dtype() == DType::i64) {
    check(which == Features::usual, "choose_features: the features of {} are categories, which are taken as they are",
          set.name);
    return;
  }
  if (which == Features::usual)
    which = has_labels ? Features::labels : has_attributes ? Features::attributes : Features::degree;
  check(which != Features::labels || has_labels, "choose_features: {} has no node labels", set.name);
  check(which != Features::attributes || has_attributes, "choose_features: {} has no node attributes", set.name);
  check(which != Features::all || has_labels || has_attributes,
        "choose_features: {} has neither node labels nor node attributes", set.name);
  set.x = set.ones = {};
  set.num_features = 0;
  if (has_attributes && (which == Features::attributes || which == Features::all)) {
    set.x = set.node_attributes;
    set.num_features = set.x.dim(1);
  }
  if (has_labels && (which == Features::labels || which == Features::all)) set_label_features(set, set.num_features);
  if (which == Features::degree) set_degree_features(set);
  if (which == Features::constant) {
    set.ones = Tensor::empty({set.num_nodes(), 1}, DType::i32);
    std::fill_n(set.ones.mutable_data<int32_t>(), set.num_nodes(), 0);
    set.num_features = 1;
  }
}

std::string describe(const GraphSet& set) {
  const auto many = [](int64_t n, const char* one, const char* more) { return to_text(n) + " " + (n == 1 ? one : more); };
  const std::string what = set.task == GraphTask::classes  ? many(set.outputs, "class", "classes")
                           : set.task == GraphTask::binary ? many(set.outputs, "yes-or-no task", "yes-or-no tasks")
                                                           : many(set.outputs, "target", "targets");
  return set.name + ": " + many(set.num_graphs(), "graph", "graphs") + ", " + many(set.num_nodes(), "node", "nodes") + ", " +
         many(set.num_edges(), "directed edge", "directed edges") + ", " + many(set.num_features, "feature", "features") +
         ", " + what;
}

}  // namespace tessera
