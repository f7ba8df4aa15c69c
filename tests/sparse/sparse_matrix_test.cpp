#include "tessera/sparse/sparse_matrix.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/tests/support/cases.h"

namespace tessera {
namespace {

using namespace test;

SparseMatrix example(const Tensor& values) {
  return {Graph::from_csr(Tensor::from<int64_t>({0, 2, 2, 3}, {4}), Tensor::from<int32_t>({0, 3, 1}, {3}), 4), values};
}

TEST(SparseMatrix, Matmul) {
  verify({.name = "sparse matmul",
          .inputs = {real({3}).saved(), real({4, 5}).saved()},
          .call = [](const Tensors& in) { return matmul(example(in[0]), in[1]); },
          .reference =
              [](const Arrays& in) {
                Array out(Shape{3, 5});
                for (int64_t j = 0; j < 5; ++j) {
                  out(0, j) = in[0][0] * in[1](0, j) + in[0][1] * in[1](3, j);
                  out(2, j) = in[0][2] * in[1](1, j);
                }
                return out;
              },
          .k = 3});
}

/// The entries are dropped as a dense array of them would be, and the pattern is shared, not copied.
TEST(SparseMatrix, DropoutOnStoredEntries) {
  const SparseMatrix x = example(Tensor::from<float>({1, 2, 3}, {3}));
  Generator one(9), two(9);
  const SparseMatrix dropped = dropout(x, 0.5, one);
  EXPECT_TRUE(same_bits(dropped.values, dropout(x.values, 0.5, two)));
  EXPECT_TRUE(dropped.pattern.is(x.pattern));
  EXPECT_EQ(x.rows(), 3);
  EXPECT_EQ(x.columns(), 4);
}

TEST(SparseMatrix, Errors) {
  verify_errors({{[] {
                    matmul(example(zeros({3})), zeros({5, 2}));
                  },
                  "InvalidArgument: spmm: x has shape [5, 2] but the graph has 4 sources, so it needs [4, F]"}});
}

}  // namespace
}  // namespace tessera
