#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/random.h"
#include "tessera/sparse/graph.h"
#include "tessera/tests/support/graphs.h"

/// Edge lists whose sides differ, for graphs of the sparse room.
namespace tessera::test {

struct TwoSided {
  std::string name;
  int64_t num_src = 0, num_dst = 0;
  std::vector<int32_t> src, dst;

  TwoSided() = default;
  TwoSided(std::string n, int64_t sources, int64_t destinations, std::vector<int32_t> s, std::vector<int32_t> d)
      : name(std::move(n)), num_src(sources), num_dst(destinations), src(std::move(s)), dst(std::move(d)) {}
  explicit TwoSided(const EdgeList& g) : TwoSided(g.name, g.num_nodes, g.num_nodes, g.src, g.dst) {}

  int64_t num_edges() const { return int64_t(src.size()); }
  Graph graph() const {
    return Graph::from_coo(Tensor::from(src, Shape{num_edges()}), Tensor::from(dst, Shape{num_edges()}), num_src, num_dst);
  }
  std::vector<int64_t> in_degree() const {
    std::vector<int64_t> degree(static_cast<size_t>(num_dst));
    for (const int32_t d : dst) ++degree[size_t(d)];
    return degree;
  }
  /// Of either side.
  int64_t largest_degree() const {
    std::vector<int64_t> out(static_cast<size_t>(num_src)), in = in_degree();
    for (const int32_t s : src) ++out[size_t(s)];
    out.insert(out.end(), in.begin(), in.end());
    return out.empty() ? 0 : *std::max_element(out.begin(), out.end());
  }
};

/// Random sources; destinations by the square of a uniform draw, so that degrees are uneven.
inline TwoSided random_two_sided(int64_t num_src, int64_t num_dst, int64_t edges, uint64_t seed) {
  TwoSided g("random", num_src, num_dst, {}, {});
  const Philox random(seed, 0);
  for (int64_t e = 0; e < edges; ++e) {
    const Philox::Draw draw = random(uint64_t(e));
    const double u = double(draw.bits[1]) * 0x1p-32;
    g.src.push_back(int32_t(draw.bits[0] % uint64_t(num_src)));
    g.dst.push_back(int32_t(u * u * double(num_dst)));
  }
  return g;
}

/// The graphs that all kernels meet, and one whose sides differ.
inline std::vector<TwoSided> two_sided_graphs() {
  std::vector<TwoSided> list;
  for (const EdgeList& g : graphs()) list.emplace_back(g);
  list.push_back(random_two_sided(7, 11, 60, 1));
  return list;
}

}  // namespace tessera::test
