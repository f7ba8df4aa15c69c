#pragma once

#include <string>
#include <vector>

#include "tessera/datasets/graph/catalogue.h"
#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

/// Names that `load_node_dataset` knows, sorted.
std::vector<std::string> known_node_datasets();

/// The node data set `name` from the folder or file `data`: "karate" is built in; else the first of
///  - DATA itself, when it is the set's file or the folder of its files,
///  - DATA/NAME, DATA/NAME/raw (as PyG stores downloads), DATA/NAME.npz,
///  - the family folders of DATA: planetoid/, npz/*/, heterophilous/, geom-gcn/.
/// A name that is not known may be the user's own: an .npz file, or a folder with edges.csv and nodes.csv (`load_csv_graph`;
/// also .tsv, .txt, .gz), that is called NAME, at DATA/NAME or DATA itself; or `name` is its path, with a '/' or .npz. A
/// family may be asked for: "heterophilous/cornell", "gnn-benchmark/cora". Upper and lower case are one; PyG's names
/// ("photo", "cs") are understood. Files with a recorded checksum are compared with it. Nodes without a label are in no
/// split of geom-gcn (CiteSeer's have all nodes; others count those as of class 0). Errors: InvalidArgument for a name that
/// is not known, with the nearest; IoError when it is nowhere, listing where it was looked for, and as the readers,
/// `check_recorded`.
NodeDataset load_node_dataset(const std::string& name, const std::string& data);

/// The same from the first of several folders that has it. With `download`, a set of the catalogue that none has is fetched
/// into its place below the last folder, and a Planetoid folder that lacks some of its files gets those.
/// Errors: also IoError for a download that did not work, with its reason and where the files would go.
NodeDataset load_node_dataset(const std::string& name, const std::vector<std::string>& folders, const Fetch* download);

}  // namespace tessera
