#include "tessera/tests/support/graphs.h"

#include <stdexcept>

#include "tessera/core/random.h"

namespace tessera::test {
namespace {

EdgeList path(int32_t nodes) {
  EdgeList g{"path", nodes, {}, {}};
  for (int32_t i = 0; i + 1 < nodes; ++i) {
    g.src.push_back(i);
    g.dst.push_back(i + 1);
  }
  return g;
}

EdgeList star(int32_t leaves) {
  EdgeList g{"star", leaves + 1, {}, {}};
  for (int32_t i = leaves; i >= 1; --i) {
    g.src.push_back(i);
    g.dst.push_back(0);
    g.src.push_back(0);
    g.dst.push_back(i);
  }
  return g;
}

EdgeList hub() {
  EdgeList g{"hub", 200, {}, {}};
  for (int32_t e = 0; e < 8300; ++e) {
    g.src.push_back(e * 7 % 200);
    g.dst.push_back(e % 83 == 0 ? e / 83 + 50 : 3);  // 100 edges elsewhere keep the hub from being the whole graph
  }
  return g;
}

std::vector<EdgeList> all() {
  std::vector<EdgeList> list;
  list.push_back({"empty", 0, {}, {}});
  list.push_back({"one_node", 1, {}, {}});
  list.push_back({"no_edges", 5, {}, {}});
  list.push_back({"empty_ends", 7, {0, 6, 2, 3, 0}, {3, 2, 4, 3, 2}});
  list.push_back({"self_loops", 4, {0, 1, 2, 3, 3, 1}, {0, 1, 2, 3, 3, 0}});
  list.push_back({"duplicates", 4, {2, 1, 2, 2, 1, 3}, {0, 0, 0, 0, 2, 2}});
  list.push_back(path(33));
  list.push_back(star(70));
  list.push_back(hub());
  list.push_back(rmat(8, 2000, 1));
  return list;
}

}  // namespace

EdgeList rmat(int log2_nodes, int64_t num_edges, uint64_t seed) {
  EdgeList g{"rmat", int64_t{1} << log2_nodes, {}, {}};
  const Philox random(seed, 0);
  for (int64_t e = 0; e < num_edges; ++e) {
    int32_t src = 0, dst = 0;
    for (int level = 0; level < log2_nodes; ++level) {
      const float u = Philox::unit(random.word(uint64_t(e * log2_nodes + level)));
      src = src * 2 + (u >= 0.76f ? 1 : 0);
      dst = dst * 2 + ((u >= 0.57f && u < 0.76f) || u >= 0.95f ? 1 : 0);
    }
    g.src.push_back(src);
    g.dst.push_back(dst);
  }
  return g;
}

const std::vector<EdgeList>& graphs() {
  static const std::vector<EdgeList> list = all();
  return list;
}

const EdgeList& graph(const std::string& name) {
  for (const EdgeList& g : graphs())
    if (g.name == name) return g;
  throw std::invalid_argument("no test graph is named '" + name + "'");
}

}  // namespace tessera::test
