#pragma once

#include <string>

#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

/// Reads the original files of Cora, CiteSeer or PubMed, `folder`/ind.`name`.{x,tx,allx,y,ty,ally,graph,test.index}:
/// pickles of scipy and numpy arrays (read by the safe subset) and a list of test ids. Nodes are the rows of allx, then the
/// test nodes; row k of tx belongs to node test.index[k]. Ids between that no file mentions (15 in CiteSeer) get zero
/// features and label -1. One split: the first len(y) nodes train, the next 500 validate, test.index tests.
/// Errors: IoError, naming every file that is missing.
/// Source: Yang, Cohen, Salakhutdinov, "Revisiting semi-supervised learning with graph embeddings", ICML 2016.
NodeDataset load_planetoid(const std::string& folder, const std::string& name);

}  // namespace tessera
