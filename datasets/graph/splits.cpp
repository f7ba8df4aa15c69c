#include "tessera/datasets/graph/splits.h"

#include <algorithm>
#include <vector>

#include "tessera/core/error.h"
#include "tessera/core/random.h"
#include "tessera/datasets/graph/assemble.h"

namespace tessera {
namespace {

// Streams of a seed's random numbers below this one belong to training.
constexpr uint64_t kSplitStream = uint64_t{1} << 40;

// Labelled nodes, all in one random order.
std::vector<int32_t> shuffled(const NodeDataset& dataset, uint64_t seed) {
  check(dataset.labels.defined(), "split: the data set '{}' has no labels", dataset.name);
  const Philox random(seed, kSplitStream);
  std::vector<std::pair<uint64_t, int32_t>> draws;
  const int32_t* labels = dataset.labels.data<int32_t>();
  for (int64_t i = 0; i < dataset.num_nodes; ++i)
    if (labels[i] >= 0) {
      const Philox::Draw draw = random(uint64_t(i));
      draws.emplace_back(uint64_t(draw.bits[0]) << 32 | draw.bits[1], int32_t(i));
    }
  std::sort(draws.begin(), draws.end());
  std::vector<int32_t> nodes;
  for (const auto& draw : draws) nodes.push_back(draw.second);
  return nodes;
}

Tensor sorted_ids(std::vector<int32_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return ids(nodes);
}

// Deals each class's nodes, in random order, to train, valid and test by the counts that `limits(class)` gives.
template <class F>
NodeSplit deal(const NodeDataset& dataset, uint64_t seed, const F& limits) {
  std::vector<int32_t> train, valid, test;
  std::vector<int64_t> dealt(size_t(dataset.num_classes), 0);
  for (const int32_t node : shuffled(dataset, seed)) {
    const size_t label = size_t(dataset.labels.data<int32_t>()[node]);
    const auto [train_count, valid_count] = limits(label);
    const int64_t position = dealt[label]++;
    (position < train_count ? train : position < train_count + valid_count ? valid : test).push_back(node);
  }
  return {sorted_ids(train), sorted_ids(valid), sorted_ids(test)};
}

}  // namespace

NodeSplit split_per_class(const NodeDataset& dataset, int64_t train, int64_t valid, uint64_t seed) {
  check(train >= 0 && valid >= 0, "split_per_class: train is {} and valid {}, expected 0 or more", train, valid);
  return deal(dataset, seed, [&](size_t) { return std::pair(train, valid); });
}

NodeSplit split_shares(const NodeDataset& dataset, double train, double valid, uint64_t seed) {
  check(train >= 0 && valid >= 0 && train + valid <= 1 + 1e-12,
        "split_shares: train is {} and valid {}, expected shares of at most 1 together", train, valid);
  std::vector<int64_t> counts(size_t(dataset.num_classes), 0);
  if (dataset.labels.defined())
    for (const int32_t label : dataset.labels.span<int32_t>())
      if (label >= 0) ++counts[size_t(label)];
  // A share such as 0.6 of 5 is 2.9999...: the tiny excess keeps it 3.
  const auto share = [&](double part, size_t label) { return int64_t(part * double(counts[label]) + 1e-9); };
  return deal(dataset, seed, [&](size_t label) { return std::pair(share(train, label), share(valid, label)); });
}

NodeSplit split_planetoid(const NodeDataset& dataset, int64_t train, int64_t valid, int64_t test, uint64_t seed) {
  check(train >= 0 && valid >= 0 && test >= 0, "split_planetoid: train is {}, valid {} and test {}, expected 0 or more",
        train, valid, test);
  std::vector<int32_t> train_nodes, rest;
  std::vector<int64_t> dealt(size_t(dataset.num_classes), 0);
  for (const int32_t node : shuffled(dataset, seed))
    (dealt[size_t(dataset.labels.data<int32_t>()[node])]++ < train ? train_nodes : rest).push_back(node);
  for (size_t label = 0; label < dealt.size(); ++label)
    check(dealt[label] >= train, "split_planetoid: class {} has {} labelled nodes but {} are to train", label, dealt[label],
          train);
  check(int64_t(rest.size()) >= valid + test, "split_planetoid: {} nodes are left but {} are to validate and {} to test",
        rest.size(), valid, test);
  const auto part = [&](int64_t begin, int64_t end) {
    return sorted_ids(std::vector<int32_t>(rest.begin() + begin, rest.begin() + end));
  };
  return {sorted_ids(train_nodes), part(0, valid), part(valid, valid + test)};
}

}  // namespace tessera
