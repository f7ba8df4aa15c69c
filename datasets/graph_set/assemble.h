#pragma once

#include <string>
#include <vector>

#include "tessera/datasets/graph_set/graph_set.h"
#include "tessera/datasets/graph_set/number_lines.h"

/// What the readers of sets of graphs share: from the numbers of files, checked, to the parts of a GraphSet.
/// `origin` starts every error text; all are IoError.
namespace tessera {

/// i64 (G + 1) of the graphs' node counts. Errors: a negative count, more than 2^31 - 1 nodes.
Tensor offsets_of(const std::vector<int64_t>& counts, const std::string& origin);

enum class Repeats : uint8_t {
  kept,    ///< every edge of the list, loops too
  merged,  ///< loops are left out; equal edges become one, which has the sum of their values (as PyG's coalesce)
};

/// Sets rowptr, src and edge_attr from a list of edges, numbered over the whole set, each within one graph (the caller's
/// part). `node_offsets` is there. attributes: f32 or i64 (edges, D), or undefined.
void set_edges(GraphSet& set, const std::vector<int32_t>& from, const std::vector<int32_t>& to, const Tensor& attributes,
               Repeats repeats);

/// Sets y, outputs and class_names: the distinct labels in ascending order are the classes.
void set_classes(GraphSet& set, const std::vector<int64_t>& labels);

/// Sets node_labels, each column less its smallest. Errors: more than 100,000 values in a column.
void set_node_labels(GraphSet& set, const NumberLines<int64_t>& labels, const std::string& origin);

/// Errors: a graph that is in the split twice, in one part or in two.
void check_split(const GraphSplit& split, int64_t graphs, const std::string& origin);

/// f32 (lines, columns + values): the reals, then a one for each label, each column less its smallest; either may be
/// empty. Undefined when both are. Errors: as above; more than 2^31 numbers.
Tensor joined_columns(const NumberLines<float>& reals, const NumberLines<int64_t>& labels, const std::string& origin);

}  // namespace tessera
