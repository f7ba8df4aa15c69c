#pragma once

#include "tessera/apps/support/node_model.h"
#include "tessera/apps/support/outputs.h"
#include "tessera/datasets/graph/csv_graph.h"
#include "tessera/sparse/sparse_matrix.h"

namespace tessera::apps {

/// One graph as a model takes it.
struct NodeTask {
  NodeDataset data;
  Graph graph;
  SparseMatrix sparse;                             ///< the features, when they are sparse
  std::vector<std::string> node_ids, class_names;  ///< as the files spell them; empty: their numbers
};

/// The graph of --edges and --nodes, else the data set that --dataset and --data name, without names for nodes and classes.
/// Errors: UsageError for a name that nobody knows, with the nearest, and for nodes without edges.
/// Errors: UsageError when the options name two graphs, or columns of none.
void check_one_graph(const NodeOptions& o);
/// What the options of the data name as files: no output may be one of them.
std::vector<NamedPath> inputs_of(const NodeOptions& o);
CsvGraph load_nodes(const NodeOptions& o);

/// Prepares nodes as --component and --features say.
NodeTask make_task(const NodeOptions& o, CsvGraph graph);

/// "cora: 2708 nodes, 10556 directed edges, 1433 features, 7 classes".
std::string describe(const NodeDataset& data);

/// Scores of every node.
Tensor logits_of(NodeModel& model, const NodeTask& task, Generator& random);

}  // namespace tessera::apps
