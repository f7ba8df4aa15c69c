#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tessera/sparse/graph_batch.h"

namespace tessera {

/// One way to divide the graphs: i32 ids; a part may be empty, never undefined.
struct GraphSplit {
  Tensor train, valid, test;
};

/// What is to be told of a graph.
enum class GraphTask : uint8_t {
  classes,     ///< one of `outputs` classes
  binary,      ///< `outputs` times yes or no, NaN where nobody knows
  regression,  ///< `outputs` numbers, NaN where nobody knows
};

/// Some graphs of a set as a model takes them.
struct GraphSample {
  GraphBatch batch;
  Tensor x;          ///< (N, num_features): f32, or i64 where the set's features are categories
  Tensor edge_attr;  ///< (E, D), by edge id, of the set's dtype; undefined where the set has none
  Tensor y;          ///< i32 (G) of classes, else f32 (G, outputs)
};

/// Many graphs in memory, one after the other without padding: G graphs of N nodes and E directed edges in all. A graph may
/// have no edge, and no node.
struct GraphSet {
  std::string name;
  Tensor node_offsets;  ///< i64 (G + 1): graph g has the nodes [node_offsets[g], node_offsets[g + 1])
  Tensor rowptr;        ///< i64 (N + 1): node i is the end of the edges [rowptr[i], rowptr[i + 1])
  Tensor src;           ///< i32 (E): where they come from, numbered within the graph, ascending for each node, each once
  int64_t loops_left_out = 0, edges_merged = 0;  ///< how many edges of the files are not here

  Tensor node_labels;                      ///< i32 (N, K), each column from 0; undefined where the files have none
  std::vector<int64_t> node_label_values;  ///< of each column: its largest label + 1
  Tensor node_attributes;                  ///< f32 (N, D); undefined where the files have none
  Tensor edge_attr;                        ///< f32 or i64 (E, D): attributes, then a column for each edge label

  /// Features, as `choose_features` or the reader set them: the columns of x, which may be undefined, and then columns of
  /// zeros, but for those whose numbers are in `ones`.
  Tensor x;     ///< f32 (N, D), or i64 (N, D) for categories
  Tensor ones;  ///< i32 (N, K)
  int64_t num_features = 0;

  GraphTask task = GraphTask::classes;
  int64_t outputs = 0;  ///< classes, or values for each graph
  Tensor y;             ///< i32 (G), 0 .. outputs - 1, or -1 where the files give none; else f32 (G, outputs)
  std::vector<std::string> class_names;  ///< as the files spell them

  std::vector<GraphSplit> splits;  ///< as the files give them
  std::string metric;              ///< that the set is published with ("roc-auc"); empty: none
  std::string sha256;              ///< of the data files: SHA-256 over "digest  name" lines, in the order they are read

  int64_t num_graphs() const { return node_offsets.defined() ? node_offsets.numel() - 1 : 0; }
  int64_t num_nodes() const { return rowptr.defined() ? rowptr.numel() - 1 : 0; }
  int64_t num_edges() const { return src.defined() ? src.numel() : 0; }
  int64_t nodes_of(int64_t graph) const;
  int64_t edges_of(int64_t graph) const;

  /// The graphs `ids`, in that order, in time and memory of their own size. Edge ids are positions in `batch.graph.col()`.
  /// Errors: InvalidArgument for an id outside [0, G), naming it; features that were not chosen; more than 2^31 - 1 nodes.
  GraphSample sample(std::span<const int32_t> ids) const;
};

/// Which features `choose_features` sets.
enum class GraphFeatures : uint8_t {
  usual,       ///< labels where there are any, else attributes, else degrees, as PyG's benchmark/kernel
  labels,      ///< a one for each node label
  attributes,  ///< the node attributes
  all,         ///< attributes and labels
  degree,      ///< a one for the degree when all are below 1000, else the degree less its mean, by its deviation
  constant,    ///< 1
};

/// Sets the features of a set whose files give labels, attributes, or nothing. Degrees count the edges that leave a node.
/// Categories (i64 x) are left as they are when `usual` is asked for.
/// Errors: InvalidArgument when the set has no such labels or attributes, or has categories.
void choose_features(GraphSet& set, GraphFeatures which);

/// "PROTEINS: 1113 graphs, 43471 nodes, 162088 directed edges, 3 features, 2 classes".
std::string describe(const GraphSet& set);

}  // namespace tessera
