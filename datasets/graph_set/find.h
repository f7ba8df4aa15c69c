#pragma once

#include <string>
#include <vector>

#include "tessera/datasets/graph_set/graph_set.h"

namespace tessera {

/// Names that `load_graph_set` knows, sorted.
std::vector<std::string> known_graph_sets();

/// The set of graphs `name` from the first of several folders that has it. In each folder DATA it is the first of
///  - DATA itself, when it is the set's folder or archive and is called so,
///  - DATA/NAME, DATA/NAME/raw (as PyG stores downloads), DATA/NAME.zip,
///  - in the family folders tu/, tu/zip/, tu-gin/, tu-gin/zip/, ogb/, in that order.
/// A name that is not known may be the user's own set of one of the forms, or `name` is its path, with a '/' or .zip. One
/// family may be asked for: "tu-gin/NCI1". Upper and lower case, '-' and '_' are one. What the form is, the files say:
/// `load_tu`, `load_gin_text`, `load_ogb_graphs`. Features are not chosen yet, but for OGB's.
/// Errors: InvalidArgument for a name that is not known, with the nearest; IoError when it is nowhere, listing where it was
/// looked for, and as the readers.
GraphSet load_graph_set(const std::string& name, const std::vector<std::string>& folders);

}  // namespace tessera
