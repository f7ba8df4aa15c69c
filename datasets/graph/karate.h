#pragma once

#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

/// Zachary's karate club, built in: 34 members, 78 friendships, four classes (the communities of greatest modularity, as in
/// PyG's KarateClub), identity features (sparse). One split: the first member of each class trains, all others test.
/// Source: Zachary, "An information flow model for conflict and fission in small groups", 1977.
NodeDataset karate_club();

}  // namespace tessera
