#include "tessera/scatter/scatter_reduce.h"

#include <gtest/gtest.h>

#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/gather.h"
#include "tessera/tests/scatter/segments.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

Case row_case(const EdgeList& g, int64_t width, Reduce reduce, Before before = Before::nothing, DType index = DType::i32,
              bool half = false) {
  const bool mul = reduce == Reduce::mul, best = reduce == Reduce::max || reduce == Reduce::min;
  const int64_t nodes = g.num_nodes;
  const Shape shape{g.num_edges(), width};
  Case c{.name = std::string("scatter_reduce ") + name(reduce) + " " + g.name + " " + std::to_string(width) + " before " +
                 std::to_string(int(before)),
         .inputs = {best  ? apart(shape)
                    : mul ? real(shape, 0.7, 1.4)
                          : real(shape),
                    given_ids(Shape{g.num_edges()}, std::vector<int64_t>(g.dst.begin(), g.dst.end()), index)},
         .call =
             [=](const Tensors& in) {
               SegmentReduceOptions options;
               if (before != Before::nothing) options.initial = in[2];
               options.include_initial = before == Before::include;
               return scatter_reduce(in[0], in[1], nodes, reduce, options);
             },
         .reference =
             [=](const Arrays& in) {
               return scatter_reference(in[0], in[1], nodes, reduce, before, before == Before::nothing ? Array() : in[2]);
             },
         .k = best ? 0.0 : double(g.num_edges()) / 4 + 2,
         .grad_k = mul ? double(g.num_edges()) : 2,
         .smooth = mul ? g.num_edges() < 60 : !best || (g.num_edges() * width < 250 && before == Before::nothing)};
  if (mul) c.inputs[0].saved();
  if (!mul && !best && before != Before::keep && !half) c.inputs[1].saved();
  if (before != Before::nothing) {
    c.inputs.push_back(best ? apart(Shape{nodes, width}, -0.9, 0.9) : real(Shape{nodes, width}, 0.5, 1.5));
    if (mul && before == Before::include) c.inputs[2].saved();
  }
  return c;
}

TEST(ScatterReduce, EqualsTheReferenceOnEveryGraph) {
  for (const EdgeList& g : graphs())
    for (const Reduce reduce : kReductions)
      if (reduce != Reduce::mul || g.name != "hub") verify(row_case(g, 3, reduce));
}

TEST(ScatterReduce, EqualsTheReferenceAtEveryWidth) {
  for (const int64_t width : kWidths)
    for (const Reduce reduce : kReductions)
      verify(row_case(graph("self_loops"), width, reduce, Before::nothing, DType::i64));
}

/// Enough work that threads share it by columns and, where there are few, by ranges of rows.
TEST(ScatterReduce, SharedByColumnsAndByRows) {
  const EdgeList g = rmat(9, 20000, 5);
  for (const int64_t width : {1, 16, 17, 50}) {
    Case c = row_case(g, width, width == 16 ? Reduce::mean : Reduce::sum);
    c.smooth = false;
    verify(c);
  }
}

TEST(ScatterReduce, InitialContent) {
  for (const Before before : {Before::keep, Before::include})
    for (const Reduce reduce : kReductions) verify(row_case(graph("empty_ends"), 5, reduce, before));
}

TEST(ScatterReduce, SixteenBits) {
  for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min}) {
    Case c = row_case(graph("empty_ends"), 17, reduce, Before::nothing, DType::i32, true);
    c.dtypes = {DType::bf16, DType::f16};
    c.k = reduce == Reduce::sum || reduce == Reduce::mean ? 1 : 0;
    verify(c);
  }
}

/// x[i, j, k] goes to out[i, index[i, j, k], k], and so on for the other dimensions.
Case along_case(const Shape& shape, int dim, int64_t size, Reduce reduce, Before before = Before::nothing) {
  const bool mul = reduce == Reduce::mul, best = reduce == Reduce::max || reduce == Reduce::min;
  const int axis = dim < 0 ? dim + shape.ndim() : dim;
  Case c{.name = std::string("along ") + name(reduce) + " " + to_text(shape) + " dim " + std::to_string(dim) + " before " +
                 std::to_string(int(before)),
         .inputs = {best ? apart(shape) : real(shape, 0.7, 1.4), ids(shape, size, DType::i64).saved()},
         .call =
             [=](const Tensors& in) {
               SegmentReduceOptions options;
               if (before != Before::nothing) options.initial = in[2];
               options.include_initial = before == Before::include;
               return scatter_reduce_along(in[0], in[1], dim, size, reduce, options);
             },
         .reference =
             [=](const Arrays& in) {
               Array out(shape.with(axis, size));
               int64_t inner = 1;
               for (int i = axis + 1; i < shape.ndim(); ++i) inner *= shape[i];
               std::vector<std::vector<Real>> values(size_t(out.numel()));
               for (int64_t e = 0; e < in[0].numel(); ++e) {
                 const int64_t outer = e / (inner * shape[axis]);
                 values[size_t((outer * size + in[1].id(e)) * inner + e % inner)].push_back(in[0][e]);
               }
               for (int64_t i = 0; i < out.numel(); ++i)
                 out[i] =
                     reduce_reference(values[size_t(i)], reduce, before, before == Before::nothing ? Real(0) : in[2][i]);
               return out;
             },
         .k = best ? 0.0 : 8,
         .grad_k = 16,
         .smooth = !best || (before == Before::nothing && shape.numel() < 250)};
  if (mul) c.inputs[0].saved();
  if (before != Before::nothing) {
    c.inputs.push_back(best ? apart(shape.with(axis, size), -0.9, 0.9) : real(shape.with(axis, size), 0.5, 1.5));
    if (mul && before == Before::include) c.inputs[2].saved();
  }
  return c;
}

TEST(ScatterReduce, AlongAnyDimension) {
  for (const Reduce reduce : kReductions) {
    for (const int dim : {0, 1, 2, -1}) verify(along_case(Shape{3, 5, 4}, dim, 4, reduce));
    verify(along_case(Shape{9, 2}, 0, 3, reduce));
    verify(along_case(Shape{2, 3, 130}, 1, 2, reduce));
  }
}

/// An index expanded from one id a row goes the way of vectors; one that differs in a single place does not. Both give what
/// rows give.
TEST(ScatterReduce, AlongAnExpandedIndex) {
  const Restore restore;
  const int64_t rows = 300, size = 7;
  for (const Isa isa : isas())
    for (const int64_t width : {3, 4, 17, 64, 130}) {
      set_isa(isa);
      const Tensor x = make_inputs({apart(Shape{rows, width})}, DType::f32)[0];
      const Tensor index = make_inputs({ids(Shape{rows}, size)}, DType::f32)[0];
      std::vector<int32_t> expanded;
      for (int64_t e = 0; e < rows; ++e) expanded.insert(expanded.end(), size_t(width), index.data<int32_t>()[e]);
      const Tensor whole = Tensor::from(expanded, Shape{rows, width});
      for (const Reduce reduce : {Reduce::max, Reduce::min})
        EXPECT_TRUE(same_bits(scatter_reduce_along(x, whole, 0, size, reduce), scatter_reduce(x, index, size, reduce)));
      // Sums run in the order of the rows either way.
      EXPECT_TRUE(same_bits(scatter_reduce_along(x, whole, 0, size), scatter_reduce(x, index, size)));
      expanded[size_t(5 * width + width - 1)] = (expanded[size_t(5 * width)] + 1) % int32_t(size);
      const Tensor other = scatter_reduce_along(x, Tensor::from(expanded, Shape{rows, width}), 0, size, Reduce::max);
      const Tensor by_rows = scatter_reduce(x, index, size, Reduce::max);
      for (int64_t s = 0; s < size; ++s)
        for (int64_t j = 0; j + 1 < width; ++j)
          EXPECT_EQ(other.data<float>()[s * width + j], by_rows.data<float>()[s * width + j]);
    }
}

TEST(ScatterReduce, AlongWithInitialContent) {
  for (const Reduce reduce : kReductions)
    for (const Before before : {Before::keep, Before::include}) verify(along_case(Shape{2, 4, 5}, 1, 5, reduce, before));
}

TEST(ScatterReduce, AlongInSixteenBits) {
  for (const Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min}) {
    Case c = along_case(Shape{3, 9, 4}, 1, 3, reduce);
    c.dtypes = {DType::bf16, DType::f16};
    c.k = reduce == Reduce::sum || reduce == Reduce::mean ? 1 : 0;
    verify(c);
  }
}

/// H03.
TEST(ScatterReduce, NoElements) {
  for (const Reduce reduce : kReductions) {
    Tensor x = Tensor::empty(Shape{4, 5, 0});
    x.set_requires_grad();
    const Tensor out = scatter_reduce_along(x, Tensor::empty(Shape{4, 5, 0}, DType::i64), -1, 6, reduce);
    EXPECT_EQ(out.shape(), (Shape{4, 5, 6}));
    EXPECT_EQ(out.to_vector<float>(), std::vector<float>(120, reduce == Reduce::mul ? 1.0f : 0.0f));
    backward(out, ones(out.shape()));
    EXPECT_EQ(x.grad().shape(), x.shape());
  }
}

TEST(ScatterReduce, WinnersAlong) {
  Tensor winner;
  const SegmentReduceOptions options{.initial = {}, .winner = &winner};
  const Tensor x = Tensor::from<float>({1, 9, 3, 9, 2, 0}, Shape{3, 2}),
               index = Tensor::from<int32_t>({0, 1, 0, 1, 2, 2}, Shape{3, 2});
  EXPECT_EQ(scatter_reduce_along(x, index, 0, 4, Reduce::max, options).to_vector<float>(),
            (std::vector<float>{3, 0, 0, 9, 2, 0, 0, 0}));
  EXPECT_EQ(winner.to_vector<int64_t>(), (std::vector<int64_t>{1, -1, -1, 0, 2, 2, -1, -1}));
  const Tensor ints = Tensor::from<int32_t>({-5, -7, -6}, Shape{3, 1});
  EXPECT_EQ(
      scatter_reduce_along(ints, Tensor::from<int32_t>({0, 1, 0}, Shape{3, 1}), 0, 2, Reduce::max).to_vector<int32_t>(),
      (std::vector<int32_t>{-5, -7}));
}

/// H07 on lines.
TEST(ScatterReduce, NanAlong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({nan, 5, 5, nan}, Shape{2, 2}), index = zeros(Shape{2, 2}, DType::i32);
  for (const Reduce reduce : {Reduce::max, Reduce::min})
    for (const float v : scatter_reduce_along(x, index, 1, 1, reduce).to_vector<float>()) EXPECT_NE(v, v);
}

/// H15: products over a graph, with the gradient of a shared factor.
TEST(ScatterReduce, ProductOfMessagesWithZeros) {
  const Tensor src = Tensor::from<int32_t>({0, 0, 1, 1, 2, 2}, Shape{6}),
               dst = Tensor::from<int32_t>({1, 2, 0, 2, 0, 1}, Shape{6});
  const Tensor nodes = Tensor::from<float>({0, 0, 1, 1, 2, 2}, Shape{3, 2});
  Tensor w = Tensor::from<float>({1, 2}, Shape{1, 2});
  w.set_requires_grad();
  const Tensor weights = gather(w, zeros(Shape{3}, DType::i32));
  const Tensor out = scatter_reduce(gather(mul(nodes, weights), src), dst, 3, Reduce::mul);
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{2, 8, 0, 0, 0, 0}));
  backward(sum(out));
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{4, 8}));
}

/// H06: the transpose, packed first, as RULINGS have it; and ids that are a column of a matrix.
TEST(ScatterReduce, PackedTranspose) {
  const Tensor source = Tensor::from<float>({1, 4, 2, 5, 3, 6}, Shape{3, 2}),
               ids = Tensor::from<int64_t>({0, 1, 0}, Shape{3});
  EXPECT_EQ(scatter_reduce(source, ids, 2).to_vector<float>(), (std::vector<float>{4, 10, 2, 5}));
  EXPECT_EQ(scatter_reduce(source, ids, 2, Reduce::max).to_vector<float>(), (std::vector<float>{3, 6, 2, 5}));
}

TEST(ScatterReduce, Errors) {
  const Tensor src = ones(Shape{3, 2}), index = Tensor::from<int32_t>({0, 1, 1}, Shape{3});
  const Tensor full_index = zeros(Shape{3, 2}, DType::i64);
  const auto with_id = [&](int64_t id) {
    return [=] { scatter_reduce(ones(Shape{3}), Tensor::from<int64_t>({0, 1, id}, Shape{3}), 3); };
  };
  verify_errors({
      {with_id(3), "InvalidArgument: scatter_reduce: index[2] is 3 but needs to be in [0, 3)"},
      {with_id(100), "InvalidArgument: scatter_reduce: index[2] is 100 but needs to be in [0, 3)"},
      {with_id(-1), "InvalidArgument: scatter_reduce: index[2] is -1 but needs to be in [0, 3)"},
      {with_id(-4), "InvalidArgument: scatter_reduce: index[2] is -4 but needs to be in [0, 3)"},
      {[&] { scatter_reduce(Tensor(), index, 2); }, "InvalidArgument: scatter_reduce: src is undefined"},
      {[&] { scatter_reduce(src, Tensor(), 2); }, "InvalidArgument: scatter_reduce: index is undefined"},
      {[&] { scatter_reduce(src, src, 2); }, "InvalidArgument: scatter_reduce: index has dtype f32 but needs i32 or i64"},
      {[&] { scatter_reduce(src, full_index, 2); },
       "InvalidArgument: scatter_reduce: index has shape [3, 2] but needs one dimension"},
      {[&] {
         scatter_reduce(ones(Shape{4, 2}), index, 2);
       },
       "InvalidArgument: scatter_reduce: src has shape [4, 2] but index has 3 entries, so it needs [3, ...]"},
      {[&] { scatter_reduce(src, index, -2); },
       "InvalidArgument: scatter_reduce: size is -2 but needs to be in [0, 2147483647]"},
      {[&] {
         scatter_reduce(src, index, 2, Reduce::sum, {.initial = ones(Shape{3, 2})});
       },
       "InvalidArgument: scatter_reduce: initial has shape [3, 2] but the output has [2, 2]"},
      {[&] { scatter_reduce(ones(Shape{3}, DType::u8), index, 2); },
       "Unsupported: scatter_reduce: dtype u8 is not supported, use f32, f64, bf16 or f16"},
      {[&] { scatter_reduce(ones(Shape{3}, DType::i32), index, 2, Reduce::mean); },
       "Unsupported: scatter_reduce: reduce mean with dtype i32 is not supported, use max or min"},
      {[&] { scatter_reduce_along(Tensor(), full_index, 0, 2); }, "InvalidArgument: scatter_reduce_along: src is undefined"},
      {[&] { scatter_reduce_along(src, Tensor(), 0, 2); }, "InvalidArgument: scatter_reduce_along: index is undefined"},
      {[&] { scatter_reduce_along(src, src, 0, 2); },
       "InvalidArgument: scatter_reduce_along: index has dtype f32 but needs i32 or i64"},
      {[&] { scatter_reduce_along(src, index, 0, 2); },
       "InvalidArgument: scatter_reduce_along: index has shape [3] but src has [3, 2]"},
      {[&] { scatter_reduce_along(src, full_index, 2, 2); },
       "InvalidArgument: scatter_reduce_along: dim is 2 but src has 2 dimensions"},
      {[&] { scatter_reduce_along(src, full_index, -3, 2); },
       "InvalidArgument: scatter_reduce_along: dim is -3 but src has 2 dimensions"},
      {[&] { scatter_reduce_along(src, full_index, 0, -1); },
       "InvalidArgument: scatter_reduce_along: size is -1 but needs to be in [0, 2147483647]"},
      {[&] { scatter_reduce_along(src, full_index, 0, 0); },
       "InvalidArgument: scatter_reduce_along: index[0] is 0 but needs to be in [0, 0)"},
      {[&] {
         scatter_reduce_along(ones(Shape{3, 2}, DType::i32), full_index, 0, 1);
       },
       "Unsupported: scatter_reduce_along: reduce sum with dtype i32 is not supported, use max or min"},
      {[&] {
         scatter_reduce_along(ones(Shape{3, 2}, DType::f16), full_index, 0, 1, Reduce::mul);
       },
       "Unsupported: scatter_reduce_along: reduce mul with dtype f16 is not supported, use f32 or f64"},
  });
}

}  // namespace
}  // namespace tessera::test
