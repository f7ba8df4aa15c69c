#pragma once

#include "tessera/datasets/graph_set/file_source.h"
#include "tessera/datasets/graph_set/graph_set.h"

namespace tessera {

/// Whether the files are of TUDataset's text form: one ends in "_A.txt".
bool is_tu(const FileSource& files);

/// A set of TUDataset's text form (Morris et al. 2020, chrsmrrs.github.io/datasets/docs/format), NAME being what stands
/// before "_A.txt":
///  - NAME_A.txt: an edge "from, to" in each line, nodes numbered from 1 over the whole set;
///  - NAME_graph_indicator.txt: the graph of each node, from 1, ascending: it alone says which nodes there are;
///  - NAME_graph_labels.txt, one integer for each graph: their distinct values in ascending order are the classes; several
///    columns of 0 and 1 are as many yes-or-no tasks. NAME_graph_attributes.txt, where it is there, is what is to be told
///    in their place: numbers, NaN for a missing one;
///  - optional NAME_node_labels.txt, NAME_node_attributes.txt of one line for each node, NAME_edge_labels.txt,
///    NAME_edge_attributes.txt for each line of NAME_A.txt; labels may have several columns, each is counted from its
///    smallest.
/// As PyG's reader, loops are left out and equal edges are one (`Repeats::merged`); edges stay directed.
/// Errors: IoError naming file and line: a file that is missing or has another count of lines, an edge between two graphs,
/// a node or graph out of range.
GraphSet load_tu(FileSource& files);

}  // namespace tessera
