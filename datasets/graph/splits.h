#pragma once

#include <cstdint>

#include "tessera/datasets/graph/node_dataset.h"

/// Random splits of a data set's labelled nodes. A node's draw is keyed by (seed, node id), so a split does not depend on
/// the order of the work, and the same seed gives the same split everywhere. Nodes without a label are in no part.
namespace tessera {

/// `train` and `valid` nodes of each class (fewer where a class has fewer: training comes first), all others test.
/// Shchur et al. 2018: 20 and 30.
NodeSplit split_per_class(const NodeDataset& dataset, int64_t train, int64_t valid, uint64_t seed);

/// `train` nodes of each class, then `valid` and `test` of the rest whatever their class, others in no part.
/// Yang et al. 2016 (planetoid): 20, 500, 1000. Errors: InvalidArgument when there are not enough nodes.
NodeSplit split_planetoid(const NodeDataset& dataset, int64_t train, int64_t valid, int64_t test, uint64_t seed);

/// Shares of each class, rounded down for `train` and `valid`; the rest test. Geom-GCN, heterophilous: 0.6 (0.5), 0.2
/// (0.25). Errors: InvalidArgument unless both are in [0, 1] and their sum is at most 1.
NodeSplit split_shares(const NodeDataset& dataset, double train, double valid, uint64_t seed);

}  // namespace tessera
