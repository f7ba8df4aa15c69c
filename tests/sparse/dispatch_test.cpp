#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/scatter_reduce.h"
#include "tessera/sparse/edge_attention.h"
#include "tessera/sparse/relational_spmm.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/log.h"
#include "tessera/tests/support/proof.h"

/// What TESSERA_LOG=dispatch says of ops along edges; spmm's lines are in the tests of its kernels.
namespace tessera::test {
namespace {

class Dispatch : public testing::Test {
 protected:
  void SetUp() override {
    set_isa(Isa::baseline);
    set_threads(1);
  }

 private:
  const Restore restore_;
};

const TwoSided kEdges("", 3, 2, {0, 1, 2, 2}, {0, 0, 1, 1});

TEST_F(Dispatch, Attention) {
  const Graph graph = kEdges.graph();
  Tensor x = ones({3, 4}), a_src = ones({3, 2});
  x.set_requires_grad();
  Tensor out;
  const std::string shape =
      "cpu baseline, 1 threads; 4 edges, 2 heads x 2 channels; 1 chunks, 0 hubs; one walk, nothing of "
      "edges x channels\n";
  EXPECT_EQ(dispatch_lines([&] {
              out = gat_attention(graph, x, a_src, ones({2, 2}));
            }),
            "tessera: gat_attention forward: " + shape);
  EXPECT_EQ(
      dispatch_lines([&] { backward(out, ones(out.shape())); }),
      "tessera: gat_attention backward by destination: " + shape + "tessera: gat_attention backward by source: " + shape);
  EXPECT_EQ(dispatch_lines([&] {
              gat_attention_weights(graph, ones({3, 2}), ones({2, 2}));
            }).substr(0, 44),
            "tessera: gat_attention_weights forward: cpu ");
}

TEST_F(Dispatch, Relations) {
  const auto line = [&](int64_t columns) {
    const Shape shape{4};
    const RelationalGraph graph = RelationalGraph::from_coo(Tensor::from(kEdges.src, shape), Tensor::from(kEdges.dst, shape),
                                                            Tensor::from<int32_t>({0, 1, 1, 0}, shape), 3, 2, 2);
    const std::string text = dispatch_lines([&] {
      relational_spmm(graph, ones({3, columns}), ones({2, columns, 3}), Reduce::mean);
    });
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(line(2),
            "tessera: relational_spmm mean: 2 relations, 4 edges; sums of neighbours, then products, as x has 2 columns "
            "and the result 3");
  EXPECT_EQ(line(4),
            "tessera: relational_spmm mean: 2 relations, 4 edges; products, then sums of neighbours, as x has 4 columns "
            "and the result 3");
}

TEST_F(Dispatch, Messages) {
  const Graph graph = kEdges.graph();
  const Tensor src = Tensor::from(kEdges.src, Shape{4}), dst = Tensor::from(kEdges.dst, Shape{4});
  Tensor messages;
  EXPECT_EQ(dispatch_lines([&] {
              messages = gather(ones({3, 8}), src);
            }),
            "tessera: gather: cpu baseline, 1 threads; 4 rows of 32 bytes written\n");
  EXPECT_EQ(
      dispatch_lines([&] { scatter_reduce(messages, dst, 2); }),
      "tessera: scatter_reduce sum: cpu baseline, 1 threads; 4 rows to 2; added in their own order, the index not sorted\n");
  EXPECT_EQ(dispatch_lines([&] { scatter_reduce(messages, dst, 2, Reduce::max); }),
            "tessera: scatter_reduce max: cpu baseline, 1 threads; 4 rows to 2; sorted by index first\n"
            "tessera: segment_reduce max: cpu baseline, 1 threads; 4 rows to 2 by a plan\n");
  EXPECT_EQ(dispatch_lines([&] {
              sddmm(graph, EdgeOp::add, ones({2, 4}), ones({3, 4}));
            }),
            "tessera: sddmm: cpu baseline, 1 threads; 4 edges, 4 columns written for each\n");
}

}  // namespace
}  // namespace tessera::test
