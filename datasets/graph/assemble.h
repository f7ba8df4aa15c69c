#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/datasets/graph/node_dataset.h"

/// What the readers of node data sets share: from the arrays of a file, checked, to the parts of a NodeDataset.
/// `origin` (a path) starts every error text; all are IoError.
namespace tessera {

/// Sets src and dst: both directions of each edge (from[i], to[i]), loops and repetitions dropped. i32 or i64 ids.
/// Errors: lengths differ, an id outside [0, num_nodes).
void set_edges(NodeDataset& dataset, const Tensor& from, const Tensor& to, const std::string& origin);

/// Sets the sparse features from the arrays of a compressed sparse row matrix (rows is num_nodes), sorted and with
/// repeated entries added. `what` names the matrix. Errors: pointers that do not start at 0, fall, or do not end at the
/// number of entries; a column outside [0, columns).
void set_sparse_features(NodeDataset& dataset, const Tensor& rowptr, const Tensor& col, const Tensor& values,
                         int64_t columns, const std::string& origin, std::string_view what);

/// The rows of a compressed sparse row matrix (checked as above) as (row, column) pairs.
struct Pairs {
  Tensor row, col;  // i64
};
Pairs csr_pairs(const Tensor& rowptr, const Tensor& col, int64_t rows, int64_t columns, const std::string& origin,
                std::string_view what);

/// Sets labels and num_classes from integers of any dtype; -1 is a missing label. Errors: another negative label, one
/// beyond `most`, a count that is not num_nodes.
void set_labels(NodeDataset& dataset, const Tensor& labels, const std::string& origin, std::string_view what,
                int64_t most = 1'000'000);

/// i32 ids of the non-zero entries of a mask of `count` bytes.
Tensor ids_of_mask(const uint8_t* mask, int64_t count);
Tensor ids(const std::vector<int32_t>& values);

/// Elements as int64, from any integer dtype; as float, from any dtype. Errors: floats for integers.
Tensor to_int64(const Tensor& x, const std::string& origin, std::string_view what);
Tensor to_float32(const Tensor& x);

/// `NodeDataset::sha256` of files; the names without their folders stand in the digested lines.
std::string sha256_of_files(const std::vector<std::string>& paths);

}  // namespace tessera
