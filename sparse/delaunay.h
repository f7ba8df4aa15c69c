#pragma once

#include "tessera/sparse/graph.h"

namespace tessera {

/// Both directions of the edges of a Delaunay triangulation of points in the plane: no circle through the corners of a
/// triangle has a point inside. O(N log N). Rows ascending; edge ids are places.
///
/// Exact whatever the points (the signs of its two determinants are computed without rounding where rounding could matter):
/// - points on one line, or fewer than three, give the path along it; one point has no edge;
/// - of points at one place the one with the lowest index takes part, the others have no edge (as in PyG, through Qhull);
/// - where four or more points lie on an empty circle (a grid), one of its triangulations, the same on every run.
/// positions (N, 2), f32 or f64; node_offsets as in `NeighbourOptions`: graphs of a batch, each for itself.
/// No gradient. Errors: InvalidArgument for a shape or offsets that do not fit, a position that is not finite or beyond
/// 1e60, naming the first. Differences below 1e-75 of a graph's largest coordinate may count as none. Source: PyG's transforms Delaunay and FaceToEdge.
Graph delaunay_graph(const Tensor& positions, const Tensor& node_offsets = {});

}  // namespace tessera
