#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tessera/datasets/graph/node_dataset.h"

namespace tessera {

/// Numbers that describe a data set, computed plainly from its arrays.
struct GraphFacts {
  int64_t undirected_edges = 0, isolated = 0, components = 0, largest_component = 0, triangles = 0, max_degree = 0;
};

inline std::vector<std::vector<int32_t>> neighbours(const NodeDataset& data) {
  std::vector<std::vector<int32_t>> lists(static_cast<size_t>(data.num_nodes));
  const int32_t *src = data.src.data<int32_t>(), *dst = data.dst.data<int32_t>();
  for (int64_t e = 0; e < data.src.numel(); ++e) lists[size_t(src[e])].push_back(dst[e]);
  return lists;
}

inline GraphFacts graph_facts(const NodeDataset& data) {
  GraphFacts facts;
  const auto lists = neighbours(data);
  // Ascending lists: no edge twice, and a way back of each is found by bisection.
  const auto has = [&](int32_t i, int32_t j) {
    return std::binary_search(lists[size_t(i)].begin(), lists[size_t(i)].end(), j);
  };
  int64_t loops = 0, unsorted = 0, one_way = 0;
  for (int32_t i = 0; i < int32_t(lists.size()); ++i) {
    const auto& list = lists[size_t(i)];
    for (size_t k = 0; k < list.size(); ++k) {
      loops += list[k] == i;
      unsorted += k > 0 && list[k - 1] >= list[k];
      one_way += !has(list[k], i);
    }
  }
  EXPECT_EQ(loops, 0);
  EXPECT_EQ(unsorted, 0);
  EXPECT_EQ(one_way, 0);
  facts.undirected_edges = data.src.numel() / 2;

  std::vector<bool> seen(lists.size(), false);
  for (size_t start = 0; start < lists.size(); ++start) {
    facts.isolated += lists[start].empty();
    facts.max_degree = std::max(facts.max_degree, int64_t(lists[start].size()));
    if (seen[start]) continue;
    std::vector<size_t> component{start};
    seen[start] = true;
    for (size_t k = 0; k < component.size(); ++k)
      for (const int32_t j : lists[component[k]])
        if (!seen[size_t(j)]) {
          seen[size_t(j)] = true;
          component.push_back(size_t(j));
        }
    ++facts.components;
    facts.largest_component = std::max(facts.largest_component, int64_t(component.size()));
  }
  for (int32_t i = 0; i < int32_t(lists.size()); ++i)
    for (const int32_t j : lists[size_t(i)])
      if (j > i)
        for (const int32_t k : lists[size_t(j)]) facts.triangles += k > j && has(i, k);
  return facts;
}

/// Golden numbers of Ahat = D^-1/2 (A + I) D^-1/2.
struct Normalised {
  int64_t entries = 0;
  double sum = 0, trace = 0, norm_with_features = 0;
};

/// `norm_with_features` is the Frobenius norm of Ahat X for the sparse features of `data`.
inline Normalised normalised(const NodeDataset& data) {
  Normalised result;
  const auto lists = neighbours(data);
  const auto scale = [&](size_t i) { return 1 / std::sqrt(double(lists[i].size()) + 1); };
  for (size_t i = 0; i < lists.size(); ++i) {
    std::map<int32_t, double> row;
    const auto add = [&](size_t j) {
      const double weight = scale(i) * scale(j);
      result.sum += weight;
      ++result.entries;
      for (int64_t k = data.feature_rowptr.data<int64_t>()[j]; k < data.feature_rowptr.data<int64_t>()[j + 1]; ++k)
        row[data.feature_col.data<int32_t>()[k]] += weight * data.feature_values.data<float>()[k];
    };
    add(i);
    result.trace += scale(i) * scale(i);
    for (const int32_t j : lists[i]) add(size_t(j));
    for (const auto& [column, value] : row) result.norm_with_features += value * value;
  }
  result.norm_with_features = std::sqrt(result.norm_with_features);
  return result;
}

inline std::vector<int64_t> class_counts(const NodeDataset& data) {
  std::vector<int64_t> counts(size_t(data.num_classes), 0);
  for (const int32_t label : data.labels.to_vector<int32_t>())
    if (label >= 0) ++counts[size_t(label)];
  return counts;
}

inline std::vector<int64_t> split_sizes(const NodeDataset& data, size_t i = 0) {
  const NodeSplit& split = data.splits.at(i);
  return {split.train.numel(), split.valid.numel(), split.test.numel()};
}

/// How many nodes are in two parts of a split, or in one twice.
inline int64_t overlaps(const NodeDataset& data, size_t i = 0) {
  std::vector<int32_t> all;
  for (const Tensor& part : {data.splits[i].train, data.splits[i].valid, data.splits[i].test})
    for (const int32_t id : part.to_vector<int32_t>()) all.push_back(id);
  const std::set<int32_t> distinct(all.begin(), all.end());
  return int64_t(all.size() - distinct.size());
}

}  // namespace tessera
