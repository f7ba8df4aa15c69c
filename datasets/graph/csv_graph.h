#pragma once

#include <string>
#include <vector>

#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

enum class CsvHeader { detect, yes, no };

struct CsvGraphOptions {
  char delimiter = 0;  ///< 0: found from the first line (tab, ';', ',', else blanks), for each file
  CsvHeader edge_header = CsvHeader::detect;
  CsvHeader node_header = CsvHeader::detect;
  std::string id_column = {};  ///< name in the node table's header; empty: "id", "node", "node_id" or "name", else the first
  std::string label_column = {};  ///< empty: the first there is of "label", "class", "y",
                                  ///< "target"; without a header the last column
  std::string split_column = {};  ///< empty: "split"; none without a header
};

/// A user's own graph, with the names that stand in its files.
struct CsvGraph {
  NodeDataset data;
  std::vector<std::string> node_ids;       ///< by node number
  std::vector<std::string> class_names;    ///< by class number
  std::vector<std::string> feature_names;  ///< by column; "0", "1", ... without a header
};

/// Reads an edge list and a table of nodes, both plain or gzip text.
///
/// Edges: one a line, the first two fields are the ids of its ends; further fields are not read. Lines that start with '#'
/// are comments (an id may contain '#'). Its first line is a header when it says src/dst, source/target, from/to, or u/v.
///
/// Nodes: an id, features, and optionally a label and a split (train, valid, test; empty for none). The node table numbers
/// the nodes in its order. Ids are text, whatever they look like: 0012 and 12 differ. Labels are numbered in the order of
/// their value when all are integers, else of their bytes; an empty label is none. The first line is a header when its first
/// field is one of the id names above, or none of its fields after the first is a number. Features must be finite numbers.
/// Without a node table (`nodes_path` empty) nodes are numbered as the edges name them and have no features or labels.
///
/// Errors: IoError with path, line and field: a line of one field, an id that the node table does not have or has twice, a
/// feature that is not a number, a label "nan", a column that is not there.
CsvGraph load_csv_graph(const std::string& edges_path, const std::string& nodes_path, const CsvGraphOptions& options = {});

}  // namespace tessera
