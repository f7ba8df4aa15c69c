#include "tessera/tests/support/rings.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {

Rings::Rings(int64_t graphs, int64_t channels) {
  std::vector<Graph> parts;
  std::vector<int32_t> of_graph;
  for (int64_t g = 0; g < graphs; ++g) {
    const int32_t n = g + 1 == graphs ? 0 : g == 2 ? 1 : int32_t(3 + g % 5);
    std::vector<int32_t> src, dst;
    for (int32_t i = 0; n > 1 && i < n; ++i) {
      src.insert(src.end(), {i, (i + 1) % n});
      dst.insert(dst.end(), {(i + 1) % n, i});
      if (g % 2 == 1) {
        src.push_back((i + 2) % n);
        dst.push_back(i);
      }
    }
    parts.push_back(
        Graph::from_coo(Tensor::from(src, {int64_t(src.size())}), Tensor::from(dst, {int64_t(dst.size())}), n, n));
    of_graph.push_back(int32_t(g % 2));
  }
  batch = GraphBatch::from_graphs(parts);
  labels = Tensor::from(of_graph, {graphs});
  Generator random(7);
  const int64_t nodes = batch.graph.num_src(), edges = batch.graph.num_edges();
  x = uniform({nodes, channels}, -1, 1, random);
  const auto draw = [&](int64_t rows, std::initializer_list<int64_t> counts) {
    Tensor out = Tensor::empty({rows, 3}, DType::i64);
    const Philox philox = random.next();
    for (int64_t i = 0; i < out.numel(); ++i)
      out.mutable_data<int64_t>()[i] = int64_t(philox.word(uint64_t(i))) % counts.begin()[i % 3];
    return out;
  };
  atoms = draw(nodes, {5, 3, 2});
  bonds = draw(edges, {5, 6, 2});
}

void expect_same_for_all_threads(const std::function<Trained()>& run) {
  const Restore restore;
  set_threads(1);
  const Trained one = run();
  EXPECT_LT(one.last_loss, 0.9 * one.first_loss);
  for (const int count : {2, 3}) {
    set_threads(count);
    for (const auto& [name, tensor] : run().state)
      EXPECT_TRUE(same_bits(tensor, one.state.at(name))) << name << " with " << count << " threads";
  }
}

}  // namespace tessera::test
