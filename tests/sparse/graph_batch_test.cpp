#include "tessera/sparse/graph_batch.h"

#include <gtest/gtest.h>

#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/gold.h"

namespace tessera {
namespace {

using namespace test;

std::vector<int64_t> list(const Tensor& ids) { return {ids.span<int64_t>().begin(), ids.span<int64_t>().end()}; }

/// Case H20: graphs without nodes inside and at the end of a batch.
TEST(GraphBatch, ThereAndBack) {
  const Tensor none = Tensor::empty({2, 0}, DType::i64);
  const std::vector<Graph> graphs = {Graph::from_edge_index(Tensor::from<int64_t>({1, 0, 0, 1}, {2, 2}), 2),
                                     Graph::from_edge_index(none, 0), Graph::from_edge_index(none, 3),
                                     Graph::from_edge_index(Tensor::from<int64_t>({2, 0, 2, 1}, {2, 2}), 3),
                                     Graph::from_edge_index(none, 0)};
  const GraphBatch batch = GraphBatch::from_graphs(graphs);
  EXPECT_EQ(batch.num_graphs(), 5);
  EXPECT_EQ(list(batch.node_offsets()), (std::vector<int64_t>{0, 2, 2, 5, 8, 8}));
  EXPECT_EQ(list(batch.edge_offsets), (std::vector<int64_t>{0, 2, 2, 2, 4, 4}));
  EXPECT_EQ(list(edge_index_of(batch.graph)), (std::vector<int64_t>{1, 0, 7, 5, 0, 1, 7, 6}));
  for (size_t g = 0; g < graphs.size(); ++g)
    EXPECT_EQ(list(edge_index_of(batch.at(int64_t(g)))), list(edge_index_of(graphs[g]))) << g;
  EXPECT_EQ(GraphBatch::from_graphs({}).num_graphs(), 0);
  EXPECT_EQ(error_of([&] { batch.at(5); }), "InvalidArgument: graph_batch: graph 5 is outside [0, 5)");
}

}  // namespace
}  // namespace tessera
