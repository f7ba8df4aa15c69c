#include "tessera/datasets/graph/geom_gcn.h"

#include <algorithm>
#include <utility>

#include "tessera/core/error.h"
#include "tessera/core/io/csv.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/npy.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

std::string split_path(const std::string& folder, const std::string& name, int k) {
  return folder + "/" + name + "_split_0.6_0.2_" + std::to_string(k) + ".npz";
}

int32_t node_id(std::string_view field, const std::string& path, int64_t line) {
  const std::optional<int64_t> id = to_integer(field);
  check<IoError>(id && *id >= 0 && *id < INT32_MAX, "{}: line {} has the node '{}', expected an id, 0 or more", path, line,
                 printable(field));
  return int32_t(*id);
}

struct Node {
  int32_t id = 0;
  int64_t line = 0, label = 0;
  std::vector<int32_t> ones;
};

void read_nodes(const std::string& path, NodeDataset& dataset) {
  std::vector<Node> nodes;
  bool header = true, listed = false;
  int64_t width = 0, listed_width = 0;
  read_csv(path, {.delimiter = '\t'}, [&](const CsvRow& row) {
    check<IoError>(row.fields.size() == 3, "{}: line {} has {} fields, expected node, features and label by tabs", path,
                   row.line, row.fields.size());
    if (header) {
      header = false;
      // "feature(feature_amount:931)": the field lists which features are 1.
      constexpr std::string_view kAmount = "feature_amount:";
      const size_t amount = row.fields[1].find(kAmount);
      listed = amount != std::string_view::npos;
      if (listed) {
        const std::string_view rest = row.fields[1].substr(amount + kAmount.size());
        listed_width = to_integer(rest.substr(0, rest.find(')'))).value_or(0);
      }
      return;
    }
    Node& node = nodes.emplace_back();
    node.id = node_id(row.fields[0], path, row.line);
    node.line = row.line;
    const std::optional<int64_t> label = to_integer(row.fields[2]);
    check<IoError>(label.has_value(), "{}: line {} has the label '{}', expected an integer", path, row.line,
                   printable(row.fields[2]));
    node.label = *label;
    int64_t count = 0;
    for (std::string_view rest = row.fields[1]; !rest.empty() || count == 0;) {
      const size_t comma = rest.find(',');
      const std::string_view field = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      if (listed) {
        if (field.empty() && count == 0) break;
        const std::optional<int64_t> one = to_integer(field);
        check<IoError>(one && *one >= 0 && *one < 10'000'000, "{}: line {} has the feature '{}', expected its number", path,
                       row.line, printable(field));
        node.ones.push_back(int32_t(*one));
        listed_width = std::max(listed_width, *one + 1);
      } else {
        check<IoError>(field == "0" || field == "1", "{}: line {} has the feature '{}', expected 0 or 1", path, row.line,
                       printable(field));
        if (field == "1") node.ones.push_back(int32_t(count));
      }
      ++count;
    }
    if (!listed) {
      if (nodes.size() == 1) width = count;
      check<IoError>(count == width, "{}: line {} has {} features, expected {} as before", path, row.line, count, width);
    }
  });
  if (listed) width = listed_width;

  dataset.num_nodes = int64_t(nodes.size());
  std::sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) { return a.id < b.id; });
  std::vector<int64_t> rowptr{0}, labels;
  std::vector<int32_t> col;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0 && nodes[i].id == nodes[i - 1].id)
      fail<IoError>("{}: lines {} and {} are both of node {}", path, std::min(nodes[i].line, nodes[i - 1].line),
                    std::max(nodes[i].line, nodes[i - 1].line), nodes[i].id);
    check<IoError>(size_t(nodes[i].id) == i, "{}: there is no line for node {}", path, i);
    std::sort(nodes[i].ones.begin(), nodes[i].ones.end());
    nodes[i].ones.erase(std::unique(nodes[i].ones.begin(), nodes[i].ones.end()), nodes[i].ones.end());
    col.insert(col.end(), nodes[i].ones.begin(), nodes[i].ones.end());
    rowptr.push_back(int64_t(col.size()));
    labels.push_back(nodes[i].label);
  }
  set_labels(dataset, Tensor::from(labels, {dataset.num_nodes}), path, "the label column");
  set_sparse_features(dataset, Tensor::from(rowptr, {dataset.num_nodes + 1}), ids(col),
                      Tensor::from(std::vector<float>(col.size(), 1.0f), {int64_t(col.size())}), width, path,
                      "the feature column");
}

}  // namespace

std::vector<NodeSplit> load_geom_gcn_splits(const std::string& folder, const std::string& name, int64_t num_nodes) {
  std::vector<NodeSplit> splits;
  for (int k = 0; file_exists(split_path(folder, name, k)); ++k) {
    const NpzFile npz(split_path(folder, name, k));
    const auto part = [&](const char* member) {
      const Tensor mask = npz.read(member);
      check<IoError>(mask.dtype() == DType::u8 && mask.numel() == num_nodes,
                     "{}: {} has {} elements of {}, expected {} booleans", npz.path(), member, mask.numel(), mask.dtype(),
                     num_nodes);
      return ids_of_mask(mask.data<uint8_t>(), num_nodes);
    };
    splits.push_back({part("train_mask"), part("val_mask"), part("test_mask")});
  }
  return splits;
}

NodeDataset load_geom_gcn(const std::string& folder, const std::string& name) {
  const std::string nodes = folder + "/out1_node_feature_label.txt", edges = folder + "/out1_graph_edges.txt";
  NodeDataset dataset;
  dataset.name = name;
  read_nodes(nodes, dataset);

  std::vector<int32_t> from, to;
  bool header = true;
  read_csv(edges, {.delimiter = '\t'}, [&](const CsvRow& row) {
    check<IoError>(row.fields.size() == 2, "{}: line {} has {} fields, expected two nodes by a tab", edges, row.line,
                   row.fields.size());
    if (!std::exchange(header, false)) {
      from.push_back(node_id(row.fields[0], edges, row.line));
      to.push_back(node_id(row.fields[1], edges, row.line));
    }
  });
  set_edges(dataset, ids(from), ids(to), edges);

  std::vector<std::string> files{edges, nodes};
  for (const std::string& place : {folder, folder + "/../splits"}) {
    dataset.splits = load_geom_gcn_splits(place, name, dataset.num_nodes);
    for (size_t k = 0; k < dataset.splits.size(); ++k) files.push_back(split_path(place, name, int(k)));
    if (!dataset.splits.empty()) break;
  }
  dataset.sha256 = sha256_of_files(files);
  return dataset;
}

}  // namespace tessera
