#pragma once

#include "tessera/scatter/segment_plan.h"
#include "tessera/sparse/graph.h"

/// Plans over the edges of a graph, one row for each edge in the order of edge ids: for messages that no op of this room
/// makes on its way along a row.
///
///     gather(x, edges_by_src(graph))                 (E, ..): x of each edge's source, by edge id
///     segment_reduce(m, edges_by_dst(graph), ...)    (num_dst, ..): messages m (E, ..) reduced where they arrive
///
/// Made once and kept with the graph: a counting sort, 4 bytes an edge and 8 more where the ids are not sorted.
namespace tessera {

/// num_dst segments: the edges that end at each destination.
SegmentPlan edges_by_dst(const Graph& graph);
/// num_src segments: the edges that begin at each source.
SegmentPlan edges_by_src(const Graph& graph);

}  // namespace tessera
