#pragma once

#include <string>
#include <vector>

#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

/// Reads a set of the geom-gcn repository: `folder`/out1_graph_edges.txt (a header, one "from<TAB>to" a line),
/// out1_node_feature_label.txt (node<TAB>features<TAB>label; the features 0/1 by commas, or the numbers of the ones when the
/// header says feature_amount), and the split files in `folder` or `folder`/../splits. Rows in any order, LF or CRLF.
/// Features are sparse. Errors: IoError with the line.
/// Source: Pei et al., "Geom-GCN: geometric graph convolutional networks", ICLR 2020.
NodeDataset load_geom_gcn(const std::string& folder, const std::string& name);

/// The splits `folder`/`name`_split_0.6_0.2_0.npz, _1, ... as far as they go (ten are published), for `num_nodes` nodes.
/// None when the first is not there.
std::vector<NodeSplit> load_geom_gcn_splits(const std::string& folder, const std::string& name, int64_t num_nodes);

}  // namespace tessera
