#include "tessera/datasets/graph/karate.h"

#include "tessera/core/io/sha256.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

constexpr int kMembers = 34;

constexpr int8_t kFriends[78][2] = {
    {0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},  {0, 11},  {0, 12},  {0, 13},
    {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},   {1, 7},   {1, 13},  {1, 17},  {1, 19},  {1, 21},  {1, 30},
    {2, 3},   {2, 7},   {2, 8},   {2, 9},   {2, 13},  {2, 27},  {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},
    {4, 10},  {5, 6},   {5, 10},  {5, 16},  {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},  {13, 33}, {14, 32}, {14, 33},
    {15, 32}, {15, 33}, {18, 32}, {18, 33}, {19, 33}, {20, 32}, {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29},
    {23, 32}, {23, 33}, {24, 25}, {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31}, {28, 33}, {29, 32},
    {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33}};

constexpr int8_t kCommunity[kMembers] = {1, 1, 1, 1, 3, 3, 3, 1, 0, 1, 3, 1, 1, 1, 0, 0, 3,
                                         1, 0, 1, 0, 1, 0, 0, 2, 2, 0, 0, 2, 0, 0, 2, 0, 0};

}  // namespace

NodeDataset karate_club() {
  NodeDataset dataset;
  dataset.name = "karate";
  dataset.num_nodes = kMembers;

  std::vector<int32_t> from, to, community(kCommunity, kCommunity + kMembers);
  for (const auto& pair : kFriends) {
    from.push_back(pair[0]);
    to.push_back(pair[1]);
  }
  set_edges(dataset, ids(from), ids(to), "karate");
  set_labels(dataset, ids(community), "karate", "the labelling");

  set_identity_features(dataset);

  std::vector<int32_t> train, test;
  std::vector<bool> seen(size_t(dataset.num_classes), false);
  for (int i = 0; i < kMembers; ++i) {
    const size_t label = size_t(kCommunity[i]);
    (seen[label] ? test : train).push_back(i);
    seen[label] = true;
  }
  dataset.splits.push_back({ids(train), ids({}), ids(test)});

  Sha256 digest;
  digest.update(kFriends, sizeof kFriends);
  digest.update(kCommunity, sizeof kCommunity);
  dataset.sha256 = digest.hex();
  return dataset;
}

}  // namespace tessera
