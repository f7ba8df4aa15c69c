#pragma once

#include "tessera/core/tensor.h"

namespace tessera {

/// Edges as lists: src and dst i32 or i64 (E), and a weight each, f32 or f64 (E), or none.
struct EdgeList {
  Tensor src, dst, weight;
  /// Of a result: i64 (E), the first edge of the input that each edge stands for, whatever its direction, so that
  /// `gather(features, edges.first)` are their features. Not looked at in an input.
  Tensor first = {};
};

/// What becomes of the weights of equal edges.
enum class Merge : uint8_t { sum, mean, max, min, first };

/// Each pair (src, dst) once, ordered by src, then dst; the weights of equal edges merged in input order. No gradient.
/// Two counting sorts: no combined key that could overflow. src and dst of the result: i32.
/// Errors: InvalidArgument for ids outside [0, num_nodes), unequal lengths, more than 2^31 - 1 nodes.
EdgeList coalesce(const EdgeList& edges, int64_t num_nodes, Merge merge = Merge::sum);

/// Both directions of every edge, coalesced. A self loop is its own mirror image and is not doubled (PyG's to_undirected
/// doubles its weight under a sum). `first` is the first in input order of either direction.
EdgeList to_undirected(const EdgeList& edges, int64_t num_nodes, Merge merge = Merge::sum);

/// The edges between two nodes, in their order. No gradient. src and dst of the result: i32.
EdgeList remove_self_loops(const EdgeList& edges, int64_t num_nodes);

}  // namespace tessera
