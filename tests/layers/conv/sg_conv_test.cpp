#include "tessera/layers/conv/sg_conv.h"

#include <gtest/gtest.h>

#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TEST(SignFeatures, ArePowersSideBySide) {
  const Graph graph = Graph::from_edge_index(Tensor::from<int64_t>({0, 1, 1, 2, 2, 3, 1, 0, 2, 1, 3, 2}, {2, 6}), 5);
  const Tensor x = random_seed({5, 3}, DType::f64, 1);
  const Tensor features = sign_features(x, graph, {}, {.hops = 2});
  ASSERT_EQ(features.shape(), (Shape{5, 9}));
  for (int hops = 0; hops <= 2; ++hops) {
    const Tensor expected = propagate(x, graph, {}, {.hops = hops});
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 3; ++j)
        EXPECT_EQ(features.data<double>()[i * 9 + hops * 3 + j], expected.data<double>()[i * 3 + j]);
  }
  verify_errors(
      {{[&] { sign_features(x, graph, {}, {.hops = -1}); }, "InvalidArgument: sg_conv: -1 hops asked but needs 0 or more"}});
}

}  // namespace
}  // namespace tessera::test
