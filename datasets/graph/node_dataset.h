#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/tensor.h"

namespace tessera {

/// One way to divide the nodes: i32 ids, ascending unless the files give an order; a part may be empty, never undefined.
struct NodeSplit {
  Tensor train, valid, test;
};

/// A graph whose nodes are to be classified, in memory. Features are dense, or sparse when the files hold them so.
struct NodeDataset {
  std::string name;
  int64_t num_nodes = 0;
  int64_t num_features = 0;
  int64_t num_classes = 0;

  Tensor features;        ///< f32 (num_nodes, num_features); undefined when the features are sparse
  Tensor feature_rowptr;  ///< i64 (num_nodes + 1); with the next two, the features in compressed sparse rows
  Tensor feature_col;     ///< i32, ascending in a row, each once
  Tensor feature_values;  ///< f32

  Tensor labels;                  ///< i32 (num_nodes), 0 .. num_classes - 1, or -1 where the files give none
  Tensor src, dst;                ///< i32: both directions of every edge, each once, no loops, ascending by (src, dst)
  std::vector<NodeSplit> splits;  ///< as the files give them; empty when they give none

  std::string sha256;  ///< of the data files: SHA-256 over "digest  name" lines, in the order they are listed

  bool sparse_features() const { return feature_rowptr.defined(); }
  int64_t num_directed_edges() const { return src.defined() ? src.numel() : 0; }
};

/// Divides every row of the features by its sum of absolute values; zero rows stay zero.
/// The dataset gets new arrays; other holders of the old ones see no change.
void normalise_rows(NodeDataset& dataset);

/// Dense features of which at most the share `most` is not zero become sparse: a product with them then costs what is there.
/// True when they did. NaN is not zero, -0 is.
bool sparsify_features(NodeDataset& dataset, double most);

/// Gives nodes without features the unit vectors: sparse features (num_nodes, num_nodes).
void set_identity_features(NodeDataset& dataset);

/// Takes nodes without a label out of every split; the others keep their order. Gives how many nodes that were, each once.
int64_t drop_unlabelled(NodeDataset& dataset);

/// Drops every node outside the largest connected component (of those of one size, the one with the lowest id) and numbers
/// the others anew in their order; splits lose what is dropped.
void keep_largest_component(NodeDataset& dataset);

}  // namespace tessera
