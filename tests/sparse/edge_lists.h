#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"

/// Edge lists that the sparse tests share, and random arrays for them.
namespace tessera::test {

struct EdgeList {
  std::string name;
  int64_t num_src, num_dst;
  std::vector<int32_t> src, dst;

  int64_t count() const { return int64_t(src.size()); }
  void add(int64_t s, int64_t d) {
    src.push_back(int32_t(s));
    dst.push_back(int32_t(d));
  }
  Graph graph() const {
    return Graph::from_coo(Tensor::from(src, Shape{count()}), Tensor::from(dst, Shape{count()}), num_src, num_dst);
  }
};

inline EdgeList random_list(const char* name, int64_t num_src, int64_t num_dst, int64_t count, uint64_t seed) {
  EdgeList list{name, num_src, num_dst, {}, {}};
  const Philox random(seed, 0);
  for (int64_t e = 0; e < count; ++e) {
    const Philox::Draw draw = random(uint64_t(e));
    // The square of a uniform draw favours low destinations, so degrees are uneven.
    const double u = double(draw.bits[1]) * 0x1p-32;
    list.add(int64_t(draw.bits[0] % uint64_t(num_src)), int64_t(u * u * double(num_dst)));
  }
  return list;
}

/// Small lists of every awkward kind, and two that are cut: many chunks, and hub rows.
inline std::vector<EdgeList> edge_lists() {
  std::vector<EdgeList> lists;
  lists.push_back({"no nodes", 0, 0, {}, {}});
  lists.push_back({"one node", 1, 1, {}, {}});
  lists.push_back({"no edges", 3, 4, {}, {}});
  lists.push_back({"one loop", 1, 1, {0}, {0}});
  lists.push_back({"empty first and last row", 4, 4, {0, 3, 2}, {1, 2, 1}});
  lists.push_back({"duplicates and loops", 3, 3, {0, 0, 1, 1, 2, 0}, {1, 1, 1, 0, 2, 1}});
  EdgeList path{"path", 20, 20, {}, {}};
  for (int64_t i = 0; i + 1 < 20; ++i) path.add(i, i + 1);
  lists.push_back(path);
  EdgeList star{"star", 50, 50, {}, {}};
  for (int64_t i = 1; i < 50; ++i) star.add(i, 0);
  lists.push_back(star);
  lists.push_back(random_list("bipartite", 7, 11, 60, 1));
  lists.push_back(random_list("random", 300, 200, 6000, 2));
  EdgeList hubs = random_list("hubs", 500, 40, 900, 3);
  for (int64_t i = 0; i < 2 * 4096 + 5; ++i) hubs.add(i % 500, 39);
  for (int64_t i = 0; i < 4097; ++i) hubs.add((i * 7) % 500, 0);
  for (int64_t i = 0; i < 4096; ++i) hubs.add((i * 3) % 500, 20);
  lists.push_back(hubs);
  return lists;
}

/// Uniform in [-1, 1).
template <class T>
std::vector<T> random_values(int64_t count, uint64_t seed) {
  std::vector<T> values(static_cast<size_t>(count));
  const Philox random(seed, 1);
  for (int64_t i = 0; i < count; ++i) values[size_t(i)] = T(2 * Philox::unit(random.word(uint64_t(i))) - 1);
  return values;
}

template <class T>
Tensor random_tensor(const Shape& shape, uint64_t seed) {
  return Tensor::from(random_values<T>(shape.numel(), seed), shape);
}

}  // namespace tessera::test
