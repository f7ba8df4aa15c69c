// More elements than an int32 counts (tests/support/repeated.h): wide rows in every run, and more edges than that in long
// ones.

#include <gtest/gtest.h>

#include <vector>

#include "tessera/core/ops/create.h"
#include "tessera/sparse/edge_attention.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/sparse/spmm.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/repeated.h"

namespace tessera::test {
namespace {

constexpr int64_t kRow = 1024;  // edges of a row; the last row has the whole tail, a hub that lies past 2^31

template <class T, class F>
Tensor filled(int64_t count, const F& f) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(T(f(i)));
  return Tensor::from(values, Shape{count});
}

/// Sources 0 to 6, and 7 in the tail.
Tensor columns() {
  return repeated(filled<int32_t>(kPattern, [](int64_t i) { return i % 7; }),
                  filled<int32_t>(kTail, [](int64_t) { return 7; }), kPastInt32, Shape{kPastInt32});
}

/// Only the rows that edges name are read: the last two begin past 2^31 elements.
TEST(PastInt32, WideRows) {
  constexpr int64_t kWide = int64_t{1} << 18, kNodes = (int64_t{1} << 13) + 2;
  const Tensor x =
      zeros_before(filled<float>(2 * kWide, [](int64_t i) { return 1 + i / kWide + i % kWide % 5; }), Shape{kNodes, kWide});
  const Graph graph = Graph::from_coo(Tensor::from<int64_t>({kNodes - 1, 0, kNodes - 2}, Shape{3}),
                                      Tensor::from<int64_t>({0, 1, 0}, Shape{3}), kNodes, 2);
  const Tensor out = spmm(graph, x);
  for (int64_t j = 0; j < kWide; ++j) {
    ASSERT_EQ(out.data<float>()[j], float(3 + 2 * (j % 5))) << j;
    ASSERT_EQ(out.data<float>()[kWide + j], 0.0f) << j;
  }
  const Tensor best = spmm(graph, x, Reduce::max),
               attended = gat_attention(graph, x, zeros(Shape{kNodes, 1}), zeros(Shape{2, 1}));
  double dots[2] = {};
  for (int64_t j = 0; j < kWide; ++j) {
    ASSERT_EQ(best.data<float>()[j], float(2 + j % 5)) << j;
    ASSERT_EQ(attended.data<float>()[j], 1.5f + float(j % 5)) << j;
    dots[0] += double(2 + j % 5);
    dots[1] += double(1 + j % 5);
  }
  const Tensor dot = sddmm_dot(graph, ones(Shape{2, kWide}), x);
  EXPECT_FLOAT_EQ(dot.data<float>()[0], float(dots[0]));
  EXPECT_EQ(dot.data<float>()[1], 0.0f);
  EXPECT_FLOAT_EQ(dot.data<float>()[2], float(dots[1]));
}

TEST(PastInt32, LongSpmm) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  const int64_t whole = kPastInt32 - kTail, rows = whole / kRow + 1;
  const Tensor rowptr = filled<int64_t>(rows + 1, [=](int64_t d) { return d < rows ? d * kRow : kPastInt32; });
  // The checked doors would copy the columns.
  const Graph graph = GraphState::make(8, rows, rowptr, columns(), Tensor());
  const Tensor out = spmm(graph, filled<float>(8, [](int64_t s) { return s + 1; }).view_as(Shape{8, 1}));
  std::vector<int64_t> expected(size_t(kPattern / kRow));
  for (int64_t e = 0; e < kPattern; ++e) expected[size_t(e / kRow)] += e % 7 + 1;
  for (int64_t d = 0; d + 1 < rows; ++d)
    ASSERT_EQ(out.data<float>()[d], float(expected[size_t(d % (kPattern / kRow))])) << d;
  EXPECT_EQ(out.data<float>()[rows - 1], float(8 * kTail));
  EXPECT_EQ(graph.in_degree().data<int32_t>()[rows - 1], kTail);
}

TEST(PastInt32, LongGraphChecksIds) {
  if (!long_tests()) GTEST_SKIP() << "TESSERA_LONG is not set";
  const std::string at = std::to_string(kPastInt32 - kTail);
  const Tensor ids = columns();
  verify_errors(
      {{[&] { Graph::from_coo(ids, ids, 7, 7); }, "InvalidArgument: graph: src[" + at + "] is 7 but needs to be in [0, 7)"},
       {[&] { Graph::from_csr(filled<int64_t>(2, [](int64_t i) { return i * 5; }), ids, 8); },
        "InvalidArgument: graph: rowptr ends at 5 but col has " + std::to_string(kPastInt32) + " entries"}});
}

}  // namespace
}  // namespace tessera::test
