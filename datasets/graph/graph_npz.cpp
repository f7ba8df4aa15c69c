#include "tessera/datasets/graph/graph_npz.h"

#include "tessera/core/error.h"
#include "tessera/core/io/npy.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

std::string stem(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.ends_with(".npz")) name.resize(name.size() - 4);
  return name;
}

void set_dense_features(NodeDataset& dataset, const Tensor& values, const std::string& path, const char* what) {
  check<IoError>(values.ndim() == 2 && values.dim(0) == dataset.num_nodes,
                 "{}: {} has the shape {}, expected [{}, features]", path, what, values.shape(), dataset.num_nodes);
  dataset.features = to_float32(values);
  dataset.num_features = values.dim(1);
}

// The two sizes of a matrix.
std::pair<int64_t, int64_t> matrix_shape(const NpzFile& npz, const std::string& name) {
  const Tensor shape = to_int64(npz.read(name), npz.path(), name);
  check<IoError>(shape.numel() == 2 && shape.data<int64_t>()[0] >= 0 && shape.data<int64_t>()[1] >= 0,
                 "{}: {} is not two sizes, 0 or more", npz.path(), name);
  return {shape.data<int64_t>()[0], shape.data<int64_t>()[1]};
}

// `adj` and `attr` are the spellings of the two prefixes.
NodeDataset read_csr_form(const NpzFile& npz, const std::string& adj, const std::string& attr) {
  const std::string& path = npz.path();
  NodeDataset dataset;
  const auto [rows, columns] = matrix_shape(npz, adj + "shape");
  check<IoError>(rows == columns && rows <= INT32_MAX,
                 "{}: {}shape is [{}, {}], expected a square matrix of at most 2^31 - 1", path, adj, rows, columns);
  dataset.num_nodes = rows;
  const Pairs edges =
      csr_pairs(npz.read(adj + "indptr"), npz.read(adj + "indices"), rows, columns, path, "the adjacency matrix");
  set_edges(dataset, edges.row, edges.col, path);
  if (npz.contains(attr + "data")) {
    const auto [feature_rows, features] = matrix_shape(npz, attr + "shape");
    check<IoError>(feature_rows == rows, "{}: the feature matrix has {} rows, expected {}, one per node", path, feature_rows,
                   rows);
    set_sparse_features(dataset, npz.read(attr + "indptr"), npz.read(attr + "indices"), npz.read(attr + "data"), features,
                        path, "the feature matrix");
  } else if (npz.contains("attr_matrix")) {
    set_dense_features(dataset, npz.read("attr_matrix"), path, "attr_matrix");
  }
  set_labels(dataset, npz.read("labels"), path, "labels");
  return dataset;
}

NodeDataset read_heterophilous(const NpzFile& npz) {
  const std::string& path = npz.path();
  NodeDataset dataset;
  const Tensor features = npz.read("node_features");
  check<IoError>(features.ndim() == 2, "{}: node_features has the shape {}, expected [nodes, features]", path,
                 features.shape());
  dataset.num_nodes = features.dim(0);
  set_dense_features(dataset, features, path, "node_features");
  set_labels(dataset, npz.read("node_labels"), path, "node_labels");
  const Tensor edges = to_int64(npz.read("edges"), path, "edges");
  check<IoError>(edges.ndim() == 2 && edges.dim(1) == 2, "{}: edges has the shape {}, expected [edges, 2]", path,
                 edges.shape());
  std::vector<int64_t> from, to;
  for (int64_t e = 0; e < edges.dim(0); ++e) {
    from.push_back(edges.data<int64_t>()[2 * e]);
    to.push_back(edges.data<int64_t>()[2 * e + 1]);
  }
  set_edges(dataset, Tensor::from(from, {edges.dim(0)}), Tensor::from(to, {edges.dim(0)}), path);

  const Tensor masks[] = {npz.read("train_masks"), npz.read("val_masks"), npz.read("test_masks")};
  for (const Tensor& mask : masks)
    check<IoError>(
        mask.dtype() == DType::u8 && mask.ndim() == 2 && mask.dim(1) == dataset.num_nodes && mask.dim(0) == masks[0].dim(0),
        "{}: the masks have the shapes {}, {} and {}, expected booleans of [splits, {}]", path, masks[0].shape(),
        masks[1].shape(), masks[2].shape(), dataset.num_nodes);
  for (int64_t split = 0; split < masks[0].dim(0); ++split) {
    const auto part = [&](int which) {
      return ids_of_mask(masks[which].data<uint8_t>() + split * dataset.num_nodes, dataset.num_nodes);
    };
    dataset.splits.push_back({part(0), part(1), part(2)});
  }
  return dataset;
}

}  // namespace

NodeDataset load_graph_npz(const std::string& path) {
  const NpzFile npz(path);
  NodeDataset dataset;
  if (npz.contains("adj_data")) {
    dataset = read_csr_form(npz, "adj_", "attr_");
  } else if (npz.contains("adj_matrix.data")) {
    dataset = read_csr_form(npz, "adj_matrix.", "attr_matrix.");
  } else if (npz.contains("node_features")) {
    dataset = read_heterophilous(npz);
  } else {
    fail<IoError>("{}: holds no graph, expected the arrays adj_data, adj_matrix.data or node_features", path);
  }
  dataset.name = stem(path);
  dataset.sha256 = sha256_of_files({path});
  return dataset;
}

}  // namespace tessera
