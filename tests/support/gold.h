#pragma once

#include <functional>
#include <map>
#include <string>

#include "tessera/core/module.h"
#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"

/// Comparison with what PyG's layers give: tests/layers/gold/*.safetensors, made by bench/peers/gold.py, which says what
/// the files hold.
namespace tessera::test {

/// One graph of a file and what the layer is called with. Floating tensors require gradients; what the file lacks is
/// undefined.
struct GoldGraph {
  std::string name;
  Tensor x, edge_weight, edge_attr, edge_type, edge_index, atoms, bonds;
  Graph graph;
  SegmentPlan nodes;  ///< the graph of each node: one graph unless the file has sizes
};

/// The results of a call by name; a single one is named "".
struct GoldParts : std::map<std::string, Tensor> {
  using std::map<std::string, Tensor>::map;
  GoldParts(const Tensor& only) { emplace("", only); }
};

/// i64 (2, E), the edges in the order of their ids.
Tensor edge_index_of(const Graph& graph);

/// Everything of gold/<name>.safetensors: the state loads strictly; on each graph results agree to 1e-5 of their largest
/// element, integers exactly, gradients to 1e-4 of theirs or of a fiftieth of the graph's largest gradient (some are zero
/// but for rounding); and parameters and buffers after one step of Adam to what that leaves them.
void run_gold(const std::string& name, NamedTensors state, const std::function<GoldParts(const GoldGraph&)>& call);

/// `call(module, graph)` gives a Tensor or GoldParts.
template <class Module, class Call>
void verify_gold(const std::string& name, Module module, const Call& call) {
  run_gold(name, named_parameters(module), [&](const GoldGraph& graph) -> GoldParts { return call(module, graph); });
}

/// A function without state.
template <class Call>
void verify_gold(const std::string& name, const Call& call) {
  run_gold(name, {}, [&](const GoldGraph& graph) -> GoldParts { return call(graph); });
}

}  // namespace tessera::test
