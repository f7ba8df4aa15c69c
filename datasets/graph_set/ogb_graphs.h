#pragma once

#include "tessera/datasets/graph_set/file_source.h"
#include "tessera/datasets/graph_set/graph_set.h"

namespace tessera {

/// Whether the files are of the form below: there is raw/num-node-list.csv.gz.
bool is_ogb_graphs(const FileSource& files);

/// A set of graphs in the Open Graph Benchmark's form (snap-stanford/ogb, ogb/io/read_graph_raw.py): raw/ holds gzip tables
/// without header, `num-node-list` and `num-edge-list` with a count for each graph, `edge` with "src,dst" numbered from 0
/// within the graph, optional `node-feat` and `edge-feat` (of integers, i64; else f32), and `graph-label` with a column for
/// each task, where an empty cell is NaN; split/KIND/{train,valid,test} hold a graph in each line. Files may also lie there
/// without .gz.
/// For the sets that OGB lists (ogb/graphproppred/master.csv) its table says what the task is, how it is measured, which
/// split counts, and whether each edge stands for both directions: then the reverse has the same features, and the two
/// stand at ids that follow from the order of rows. `name` is the set's ("ogbg-molbace"); for another one edges are taken
/// both ways, columns of 0, 1 and NaN alone are yes-or-no tasks, a single column of integers from 0 classes, all else
/// regression.
/// Errors: IoError naming file and line: files that are missing, counts that do not fit, nodes and graphs out of range;
/// Unsupported for ogbg-code2, whose labels are words.
GraphSet load_ogb_graphs(FileSource& files, const std::string& name);

}  // namespace tessera
