#pragma once

#include <string>

#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

/// Reads a node data set from an npz archive; its members say which form it is.
///  - gnn-benchmark: adj_{data,indices,indptr,shape}, attr_{data,indices,indptr,shape} (sparse features) or attr_matrix
///    (dense), labels. Spelled adj_matrix.data, attr_matrix.data, ... by graph2gauss and ppnp. Without attr there are no
///    features. Edges are made symmetric, weights dropped; no splits.
///    Source: Shchur et al., "Pitfalls of graph neural network evaluation", 2018.
///  - heterophilous: node_features, node_labels, edges (E, 2), {train,val,test}_masks (splits, N).
///    Source: Platonov et al., "A critical look at the evaluation of GNNs under heterophily", ICLR 2023.
/// Other members may be of any dtype, they are not read. Errors: IoError.
NodeDataset load_graph_npz(const std::string& path);

}  // namespace tessera
