#pragma once

#include "tessera/datasets/graph_set/file_source.h"
#include "tessera/datasets/graph_set/graph_set.h"

namespace tessera {

/// Whether the files are of the form below: NAME.txt, as the folder is called, or the only .txt beside 10fold_idx/.
bool is_gin_text(const FileSource& files);

/// A set of the text form of GIN (weihua916/powerful-gnns) and DGCNN (muhanzhang/pytorch_DGCNN), NAME.txt:
///  - line 1: the number of graphs;
///  - for each graph a line "n label", then n lines "tag m neighbour_1 .. neighbour_m [attribute ..]", neighbours numbered
///    from 0 within the graph.
/// Labels and tags may be any integers: classes are the distinct labels in ascending order, tags become node labels,
/// counted from the smallest; where all nodes have one tag there are none. A neighbour is where an edge to the node comes
/// from: published files list both directions. Loops are left out and equal edges are one (`Repeats::merged`).
/// 10fold_idx/{train,test}_idx-K.txt, of one graph a line from 0, are ten splits without validation graphs.
/// Errors: IoError naming file and line: lines that are missing or left over, counts of fields, neighbours out of range.
GraphSet load_gin_text(FileSource& files);

}  // namespace tessera
