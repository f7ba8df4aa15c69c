#include "tessera/sparse/relational_spmm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/storage.h"
#include "tessera/tests/sparse/relations.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

/// Edge by edge, each message by its own product.
Array reference(const Relations& list, const Array& x, const Array& weight, bool mean) {
  const int64_t k = weight.dim(1), n = weight.dim(2);
  std::map<std::pair<int32_t, int32_t>, int64_t> count;
  for (size_t e = 0; e < list.type.size(); ++e) ++count[{list.type[e], list.edges.dst[e]}];
  Array out(Shape{list.edges.num_dst, n});
  for (size_t e = 0; e < list.type.size(); ++e) {
    const int64_t r = list.type[e], s = list.edges.src[e], d = list.edges.dst[e];
    const Real share = mean ? Real(1.0) / Real(double(count[{int32_t(r), int32_t(d)}])) : Real(1);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) out(d, j) += x(s, l) * weight[(r * k + l) * n + j] * share;
  }
  return out;
}

void verify_relations(const Relations& list, int64_t k, int64_t n, Reduce reduce) {
  const RelationalGraph graph = list.graph();
  const double terms = double(list.edges.largest_degree() * std::max<int64_t>(k, n));
  const bool small = list.edges.num_edges() * k * n < 20000;
  verify(
      {.name = "relational_spmm " + list.name() + " " + std::to_string(k) + " to " + std::to_string(n) + " " + name(reduce),
       .inputs = {real({list.edges.num_src, k}).saved(), real({list.relations, k, n}).saved()},
       .call = [=](const Tensors& in) { return relational_spmm(graph, in[0], in[1], reduce); },
       .reference = [=](const Arrays& in) { return reference(list, in[0], in[1], reduce == Reduce::mean); },
       .k = terms / 4 + 4,
       .grad_k = double(list.edges.num_edges() + n + k) / 4 + 4,
       .smooth = small});
}

/// Both orders: sums before the products and behind them.
TEST(RelationalSpmm, EqualsTheReferenceOnEveryGraph) {
  for (const Relations& list : relation_graphs())
    for (const Reduce reduce : {Reduce::sum, Reduce::mean}) {
      verify_relations(list, 2, 3, reduce);
      verify_relations(list, 3, 2, reduce);
    }
}

TEST(RelationalSpmm, EqualsTheReferenceAtEveryWidth) {
  const Relations list = with_types(random_two_sided(7, 11, 60, 1), 4, 5);
  for (const int64_t width : kWidths) {
    verify_relations(list, width, 5, Reduce::mean);
    verify_relations(list, 5, width, Reduce::mean);
  }
  verify_relations(list, 0, 2, Reduce::mean);
  verify_relations(list, 2, 0, Reduce::mean);
}

/// 200,000 edges of 64 columns would be 51 MB; what is allocated beside tensors of nodes is a fraction of that.
TEST(RelationalSpmm, NoBufferOfEdgesTimesColumns) {
  constexpr int64_t kNodes = 2000, kEdges = 200000, kWidth = 64;
  const RelationalGraph graph = with_types(random_two_sided(kNodes, kNodes, kEdges, 4), 50, 6).graph();
  Generator generator(1);
  for (const int64_t out : {int64_t{32}, kWidth}) {
    Tensor x = normal(Shape{kNodes, kWidth}, generator), weight = normal(Shape{50, kWidth, out}, generator);
    x.set_requires_grad();
    weight.set_requires_grad();
    backward(relational_spmm(graph, x, weight), ones(Shape{kNodes, out}));  // builds what the graph keeps
    x.clear_grad();
    weight.clear_grad();
    reset_peak_memory();
    const int64_t before = memory_stats().used_bytes;
    backward(relational_spmm(graph, x, weight), ones(Shape{kNodes, out}));
    // Rows of nodes, and the gradient of weight twice.
    EXPECT_LT(memory_stats().peak_bytes - before, 16 * kNodes * kWidth * 4 + 3 * weight.numel() * 4);
  }
}

TEST(RelationalSpmm, Errors) {
  const RelationalGraph graph = with_types(random_two_sided(3, 4, 5, 1), 2, 1).graph();
  const auto call = [=](const Tensor& x, const Tensor& weight, Reduce reduce = Reduce::mean) {
    return [=] { relational_spmm(graph, x, weight, reduce); };
  };
  verify_errors({
      {[] {
         relational_spmm({}, ones({3, 2}), ones({2, 2, 4}));
       },
       "InvalidArgument: relational_spmm: the graph is undefined"},
      {call(Tensor(), ones({2, 2, 4})), "InvalidArgument: relational_spmm: x or weight is undefined"},
      {call(ones({3, 2}), ones({2, 2, 4}), Reduce::max),
       "Unsupported: relational_spmm: reduce max is not supported, use sum or mean"},
      {call(ones({3, 2}, DType::i32), ones({2, 2, 4})),
       "Unsupported: relational_spmm: dtype i32 is not supported, use f32 or f64"},
      {call(ones({4, 2}), ones({2, 2, 4})),
       "InvalidArgument: relational_spmm: x has shape [4, 2] but the graph has 3 sources, so it needs [3, K]"},
      {call(ones({3, 2}), ones({2, 3, 4})),
       "InvalidArgument: relational_spmm: weight has shape [2, 3, 4] but 2 relations of rows of 2 need [2, 2, N]"},
      {call(ones({3, 2}), ones({2, 2, 4}, DType::f64)), "InvalidArgument: relational_spmm: weight is f64 but x is f32"},
  });
}

}  // namespace
}  // namespace tessera::test
