#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/datasets/graph_set/graph_set.h"

/// Divisions of the graphs of a set.
namespace tessera {

/// The test fold of each graph, 0 .. folds - 1, as scikit-learn's StratifiedKFold(folds, shuffle=True, random_state=seed)
/// gives it: every fold has its share of every class. PyG's benchmark/kernel takes 10 folds and seed 12345. labels i32 (G).
/// Errors: InvalidArgument unless 2 <= folds <= G; when every class has fewer graphs than there are folds.
std::vector<int32_t> stratified_folds(const Tensor& labels, int64_t folds, uint32_t seed);

/// One number a line: the fold of each graph. Errors: IoError naming the line for a fold outside [0, folds), another count
/// of lines than `graphs`.
std::vector<int32_t> load_folds(const std::string& path, int64_t graphs, int64_t folds);

/// Tests on `fold`, validates on the fold before it (the last for fold 0), trains on the others, as PyG's benchmark/kernel.
GraphSplit split_of_fold(const std::vector<int32_t>& fold_of_graph, int64_t folds, int64_t fold);

/// A random floor(train G) and floor(valid G) of `graphs` graphs, the others to test. A graph's draw is keyed by (seed, id).
/// Errors: InvalidArgument unless both are in [0, 1] and their sum is at most 1.
GraphSplit split_at_random(int64_t graphs, double train, double valid, uint64_t seed);

/// Moves the share `valid` of the training graphs, of each class its nearest whole number, to validation, which has to be
/// empty: for splits that the files give without. labels i32 (G). Errors: InvalidArgument unless valid is in [0, 1].
void hold_out(GraphSplit& split, const Tensor& labels, double valid, uint64_t seed);

}  // namespace tessera
