#include "tessera/scatter/gather.h"

#include <gtest/gtest.h>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

Array reference(const Arrays& in) {
  const int64_t rows = in[1].numel(), width = in[0].dim(0) == 0 ? 0 : in[0].numel() / in[0].dim(0);
  Array out(in[0].shape.with(0, rows));
  for (int64_t e = 0; e < rows; ++e)
    for (int64_t j = 0; j < width; ++j) out[e * width + j] = in[0][in[1].id(e) * width + j];
  return out;
}

Case gather_case(const EdgeList& g, int64_t width, DType index = DType::i32) {
  return {.name = "gather " + g.name + " " + std::to_string(width),
          .inputs = {real(Shape{g.num_nodes, width}),
                     given_ids(Shape{g.num_edges()}, std::vector<int64_t>(g.src.begin(), g.src.end()), index).saved()},
          .call = [](const Tensors& in) { return gather(in[0], in[1]); },
          .reference = reference,
          .k = 0,
          .grad_k = double(g.num_edges()) / 4 + 1};
}

TEST(Gather, EqualsTheReferenceOnEveryGraph) {
  for (const EdgeList& g : graphs()) verify(gather_case(g, g.num_edges() > 3000 ? 3 : 5));
}

TEST(Gather, EqualsTheReferenceAtEveryWidth) {
  for (const int64_t width : kWidths) verify(gather_case(graph("duplicates"), width, DType::i64));
  verify(gather_case(graph("path"), 0));
  for (const int64_t width : {2, 4, 5, 6, 7, 15, 16, 31, 32, 33}) {
    Case c = gather_case(graph("empty_ends"), width);
    c.dtypes = {DType::f32, DType::f64, DType::bf16, DType::f16};
    verify(c);
  }
}

TEST(Gather, ByAPlan) {
  const EdgeList& g = graph("rmat");
  Case c = gather_case(g, 7);
  c.inputs.pop_back();
  const Tensor index = Tensor::from(g.src, Shape{g.num_edges()});
  const SegmentPlan plan = SegmentPlan::from_index(index, g.num_nodes);
  c.call = [plan](const Tensors& in) { return gather(in[0], plan); };
  c.reference = [index](const Arrays& in) { return reference({in[0], to_array(index)}); };
  verify(c);
}

TEST(Gather, RowsOfAnyShapeAndType) {
  const Tensor x = Tensor::from<int64_t>({1, 2, 3, 4, 5, 6}, Shape{3, 1, 2}),
               index = Tensor::from<int32_t>({2, 0}, Shape{2});
  EXPECT_EQ(gather(x, index).to_vector<int64_t>(), (std::vector<int64_t>{5, 6, 1, 2}));
  EXPECT_EQ(gather(x, index).shape(), (Shape{2, 1, 2}));
  const Tensor bytes = Tensor::from<uint8_t>({7, 8, 9}, Shape{3});
  EXPECT_EQ(gather(bytes, index).to_vector<uint8_t>(), (std::vector<uint8_t>{9, 7}));
}

/// Past the caches, in whole lines.
TEST(Gather, LargeResult) {
  const int64_t rows = 70000, width = 64, nodes = 1000;
  Tensor x = Tensor::empty(Shape{nodes, width}), index = Tensor::empty(Shape{rows}, DType::i32);
  for (int64_t i = 0; i < x.numel(); ++i) x.mutable_data<float>()[i] = float(i);
  for (int64_t e = 0; e < rows; ++e) index.mutable_data<int32_t>()[e] = int32_t(e * 7919 % nodes);
  const Tensor out = gather(x, index);
  for (int64_t e = 0; e < rows; ++e)
    for (int64_t j = 0; j < width; ++j)
      ASSERT_EQ(out.data<float>()[e * width + j], float(e * 7919 % nodes * width + j)) << e << " " << j;
}

/// H13; -1 does not wrap.
TEST(Gather, IdsOutsideAreErrors) {
  const Tensor x = ones(Shape{3});
  const auto call = [&](int64_t id) { return [=] { gather(x, Tensor::from<int64_t>({0, id}, Shape{2})); }; };
  verify_errors({
      {call(3), "InvalidArgument: gather: index[1] is 3 but needs to be in [0, 3)"},
      {call(100), "InvalidArgument: gather: index[1] is 100 but needs to be in [0, 3)"},
      {call(-1), "InvalidArgument: gather: index[1] is -1 but needs to be in [0, 3)"},
      {call(-4), "InvalidArgument: gather: index[1] is -4 but needs to be in [0, 3)"},
      {[&] {
         gather(x, Tensor::from<int32_t>({5, 7}, Shape{2}));
       },
       "InvalidArgument: gather: index[0] is 5 but needs to be in [0, 3)"},
      {[&] { gather(Tensor(), Tensor::from<int32_t>({0}, Shape{1})); }, "InvalidArgument: gather: x is undefined"},
      {[&] { gather(ones(Shape{}), Tensor::from<int32_t>({0}, Shape{1})); },
       "InvalidArgument: gather: x has shape [] but needs at least one dimension"},
      {[&] { gather(x, Tensor()); }, "InvalidArgument: gather: index is undefined"},
      {[&] { gather(x, ones(Shape{2})); }, "InvalidArgument: gather: index has dtype f32 but needs i32 or i64"},
      {[&] {
         gather(x, Tensor::from<int32_t>({0, 1}, Shape{1, 2}));
       },
       "InvalidArgument: gather: index has shape [1, 2] but needs one dimension"},
      {[&] { gather(x, SegmentPlan()); }, "InvalidArgument: gather: the plan is undefined"},
      {[&] { gather(Tensor(), SegmentPlan::from_index(Tensor::from<int32_t>({0}, Shape{1}), 2)); },
       "InvalidArgument: gather: x is undefined"},
      {[&] { gather(x, SegmentPlan::from_index(Tensor::from<int32_t>({0}, Shape{1}), 2)); },
       "InvalidArgument: gather: x has shape [3] but the plan has 2 segments, so it needs [2, ...]"},
  });
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(3, 1));
}

}  // namespace
}  // namespace tessera::test
