#pragma once

#include "tessera/sparse/graph.h"

namespace tessera {

struct Components {
  Tensor id;          ///< i32 (N): the component of each node; components are numbered by their lowest node
  int64_t count = 0;  ///< of components
};

/// Parts of a square graph between which there is no edge in either direction (weakly connected components).
/// O(N + E) and a little. No gradient. Errors: InvalidArgument unless the graph is square.
Components connected_components(const Graph& graph);

/// The nodes of the largest component, ascending: i32; of equally large ones that with the lowest node. For
/// `induced_subgraph`. Errors: as above. Source: PyG's transform LargestConnectedComponents.
Tensor largest_component(const Graph& graph);

}  // namespace tessera
