#pragma once

#include <optional>

#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"
#include "tessera/sparse/spmm.h"

namespace tessera {

/// A graph in which every node has exactly one self loop, and the weights that belong to it.
struct LoopedGraph {
  Graph graph;
  Tensor weight;     ///< (E'), by edge id; undefined when none was given and the loops weigh 1
  Tensor source_id;  ///< i64 (E'): the edge id in the graph given, -1 for an added loop
};

/// Adds the self loops that are missing (PyG's add_remaining_self_loops). Edge ids: the edges that are no loops in their
/// order, then the loops of node 0, 1, ... A loop that was there keeps its weight; of several the last one's counts.
/// weight (E), f32 or f64, by edge id; undefined: 1 each. Missing loops weigh `loop_weight`.
/// Gradient: weight. Errors: InvalidArgument unless the graph is square and weight fits.
LoopedGraph add_remaining_self_loops(const Graph& graph, const Tensor& weight = {}, double loop_weight = 1,
                                     DType dtype = DType::f32);

/// The graph of `add_remaining_self_loops` without weights, made once and kept on the graph.
const LoopedGraph& with_self_loops(const Graph& graph);

/// Features of the edges of `with_self_loops(graph)` from those of the graph's: edges that are no loops keep theirs; a
/// loop, also one that was there, gets `fill`, or without one the mean of the features of the edges that come in at its
/// node from others, 0 where there are none (PyG's remove_self_loops, then add_self_loops).
/// features (E, D), by edge id, f32 or f64; out (E', D). Gradient: features, through the mean as well.
/// Errors: InvalidArgument unless the graph is square and features fit.
Tensor looped_features(const Graph& graph, const Tensor& features, const std::optional<double>& fill = {});

struct GcnNormOptions {
  bool add_self_loops = true;  ///< those that are missing
  double loop_weight = 1;      ///< of the loops added; 2 is PyG's `improved`
  DType dtype = DType::f32;    ///< of the result for a graph without weights
};

/// A graph and the factors that normalise it: `spmm(norm.graph, x, Reduce::sum, norm.factors())`.
struct GcnNorm {
  Graph graph;
  Tensor scale;   ///< (N): factor of an edge's source and of its destination; undefined for a weighted graph
  Tensor weight;  ///< (E') by edge id: the normalised weights; undefined for an unweighted graph
  SpmmOptions factors() const { return {weight, scale, scale}; }
};

/// Symmetric normalisation of graph convolutions, D^-1/2 (A + I) D^-1/2:
///
///     weight'[e] = deg[s]^-1/2 * weight[e] * deg[d]^-1/2    for e = (s -> d),  deg[d] = sum of weights that come in at d
///
/// after `add_remaining_self_loops`. Without weights the result is kept as a factor per node instead, 4 bytes a node.
/// A degree of 0 gives the factor 0. For an unweighted graph and the default options the result is kept on the graph.
/// Gradient: edge_weight, also through the degrees.
/// Errors: InvalidArgument naming the first node with a negative degree; unless the graph is square and edge_weight fits.
/// Source: Kipf and Welling, arXiv 1609.02907; semantics of PyG's gcn_norm.
GcnNorm gcn_norm(const Graph& graph, const Tensor& edge_weight = {}, const GcnNormOptions& options = {});

}  // namespace tessera
