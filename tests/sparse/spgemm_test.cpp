#include "tessera/sparse/spgemm.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/sparse/two_sided.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

TwoSided mirrored(const TwoSided& g) { return TwoSided(g.name, g.num_dst, g.num_src, g.dst, g.src); }

/// The product as a dense matrix: entries that are absent have to be zero, and none may come twice.
Tensor spread(const SparseMatrix& m) {
  const int64_t rows = m.rows(), columns = m.columns();
  const Tensor out = zeros(Shape{rows, columns}, m.values.dtype());
  with_float(m.values.dtype(), "spread", [&]<class T>() {
    T* to = Tensor(out).mutable_data<T>();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t k = m.pattern.rowptr().data<int64_t>()[i]; k < m.pattern.rowptr().data<int64_t>()[i + 1]; ++k)
        to[i * columns + m.pattern.col().data<int32_t>()[k]] += m.values.data<T>()[k];
  });
  return out;
}

/// a has the destinations of `left` as rows, b those of `right`. The values at the product's own entries, row by row.
Case product_case(const TwoSided& left, const TwoSided& right) {
  const Graph a = left.graph(), b = right.graph();
  const Graph pattern = spgemm({a, {}}, {b, {}}).pattern;
  return {.name = "spgemm " + left.name + " " + right.name,
          .inputs = {real(Shape{left.num_edges()}).saved(), real(Shape{right.num_edges()}).saved()},
          .call =
              [=](const Tensors& in) {
                return spgemm({a, in[0]}, {b, in[1]}).values;
              },
          .reference =
              [=](const Arrays& in) {
                Array dense(Shape{left.num_dst, right.num_src});
                for (int64_t e = 0; e < left.num_edges(); ++e)
                  for (int64_t f = 0; f < right.num_edges(); ++f)
                    if (left.src[size_t(e)] == right.dst[size_t(f)])
                      dense(left.dst[size_t(e)], right.src[size_t(f)]) += in[0][e] * in[1][f];
                Array out(Shape{pattern.num_edges()});
                for (int64_t i = 0; i < left.num_dst; ++i)
                  for (int64_t k = pattern.rowptr().data<int64_t>()[i]; k < pattern.rowptr().data<int64_t>()[i + 1]; ++k)
                    out[k] = dense(i, pattern.col().data<int32_t>()[k]);
                return out;
              },
          .k = double(left.largest_degree()),
          .grad_k = double(std::max(left.largest_degree(), right.largest_degree())) + 2};
}

TEST(Spgemm, EqualsTheReferenceOnEveryGraph) {
  for (const TwoSided& g : two_sided_graphs()) {
    if (g.num_edges() > 600) continue;
    verify(product_case(g, mirrored(g)));
    if (g.num_src == g.num_dst) verify(product_case(g, g));
  }
}

TEST(Spgemm, ManyRowsEqualTheReference) {
  Case c = product_case(random_two_sided(60, 300, 700, 3), random_two_sided(200, 60, 300, 4));
  verify(c);
}

/// Entries are those that some pair of entries meets, also where values are zero or cancel; rows in order, columns rising.
TEST(Spgemm, PatternDoesNotDependOnValues) {
  const TwoSided left("", 3, 2, {2, 0, 2}, {0, 0, 1}), right("", 4, 3, {3, 1, 1, 3}, {0, 0, 2, 2});
  const auto product = [&](const std::vector<float>& a, const std::vector<float>& b) {
    return spgemm({left.graph(), Tensor::from(a, {3})}, {right.graph(), Tensor::from(b, {4})});
  };
  const SparseMatrix out = product({1, -1, 0}, {1, 1, 1, 1});
  EXPECT_EQ(out.rows(), 2);
  EXPECT_EQ(out.columns(), 4);
  EXPECT_EQ(out.pattern.rowptr().to_vector<int64_t>(), (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(out.pattern.col().to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 1, 3}));
  EXPECT_EQ(out.values.to_vector<float>(), (std::vector<float>{0, 0, 0, 0}));
  const SparseMatrix counted = spgemm({left.graph(), {}}, {right.graph(), {}});
  EXPECT_TRUE(same_bits(counted.values, product({1, 1, 1}, {1, 1, 1, 1}).values));
  EXPECT_TRUE(same_bits(spread(counted), Tensor::from<float>({0, 2, 0, 2, 0, 1, 0, 1}, {2, 4})));
}

TEST(Spgemm, Errors) {
  const Graph two = Graph::from_coo(Tensor::from<int32_t>({0, 1}, {2}), Tensor::from<int32_t>({0, 0}, {2}), 2, 1);
  verify_errors({
      {[&] {
         spgemm({Graph(), {}}, {two, {}});
       },
       "InvalidArgument: spgemm: a has no pattern"},
      {[&] {
         spgemm({two, zeros({3})}, {two, {}});
       },
       "InvalidArgument: spgemm: the values of a have shape [3] but it has 2 entries"},
      {[&] {
         spgemm({two, {}}, {two, {}});
       },
       "InvalidArgument: spgemm: a has 2 columns but b has 1 rows"},
      {[&] {
         spgemm({two, zeros({2})}, {two.transpose(), zeros({2}, DType::f64)});
       },
       "InvalidArgument: spgemm: a is f32 but b is f64"},
      {[&] {
         spgemm({two, zeros({2}, DType::f16)}, {two.transpose(), {}});
       },
       "Unsupported: spgemm: dtype f16 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
