#include "tessera/core/ops/arrange.h"

#include <gtest/gtest.h>

#include <functional>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

using Index = std::array<int64_t, Shape::kMaxDims>;

Index index_of(const Shape& shape, int64_t i) {
  Index index{};
  for (int d = shape.ndim() - 1; d >= 0; --d) {
    index[size_t(d)] = i % shape[d];
    i /= shape[d];
  }
  return index;
}

int64_t offset_of(const Shape& shape, const Index& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.ndim(); ++d) at = at * shape[d] + index[size_t(d)];
  return at;
}

/// An array of `shape` whose element at an index is x's at `from(index)`.
Array rearranged(const Array& x, const Shape& shape, const std::function<Index(Index)>& from) {
  Array out(shape);
  for (int64_t i = 0; i < out.numel(); ++i) out[i] = x[offset_of(x.shape, from(index_of(shape, i)))];
  return out;
}

std::vector<Shape> shapes() {
  std::vector<Shape> out = {{1}, {5}, {0, 3}, {3, 0}, {2, 3, 4}, {4, 1, 3}, {33, 20}, {16, 16}, {2, 3, 2, 2, 3, 2}, {17, 3, 18}};
  for (const int64_t width : kWidths) out.push_back({5, width});
  return out;
}

TEST(Arrange, Transpose) {
  for (const Shape& shape : shapes())
    for (int a = 0; a < shape.ndim(); ++a)
      for (int b = a; b < shape.ndim(); ++b)
        verify({.name = "transpose " + to_text(shape) + " " + std::to_string(a) + " " + std::to_string(b),
                .inputs = {real(shape)},
                .call = [a, b](const Tensors& in) { return transpose(in[0], a, b - in[0].ndim()); },
                .reference =
                    [a, b](const Arrays& in) {
                      return rearranged(in[0], in[0].shape.with(a, in[0].dim(b)).with(b, in[0].dim(a)), [a, b](Index i) {
                        std::swap(i[size_t(a)], i[size_t(b)]);
                        return i;
                      });
                    },
                .k = 0,
                .grad_k = 0});
}

TEST(Arrange, Permute) {
  const Shape shape{2, 5, 3, 4};
  for (const std::array<int, 4> order : {std::array{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {0, 2, 3, 1}, {2, 3, 0, 1}, {3, 0, 1, 2}})
    verify({.name = "permute",
            .inputs = {real(shape)},
            .call = [order](const Tensors& in) { return permute(in[0], {order[0], order[1], order[2], order[3] - 4}); },
            .reference =
                [&](const Arrays& in) {
                  int64_t sizes[4];
                  for (int d = 0; d < 4; ++d) sizes[d] = shape[order[size_t(d)]];
                  return rearranged(in[0], Shape(sizes, 4), [&](Index i) {
                    Index from{};
                    for (int d = 0; d < 4; ++d) from[size_t(order[size_t(d)])] = i[size_t(d)];
                    return from;
                  });
                },
            .k = 0,
            .grad_k = 0});
}

TEST(Arrange, Flip) {
  for (const Shape& shape : shapes())
    for (int dim = 0; dim < shape.ndim(); ++dim)
      verify({.name = "flip " + to_text(shape) + " " + std::to_string(dim),
              .inputs = {real(shape)},
              .call = [dim](const Tensors& in) { return flip(in[0], dim); },
              .reference =
                  [dim](const Arrays& in) {
                    return rearranged(in[0], in[0].shape, [&](Index i) {
                      i[size_t(dim)] = in[0].dim(dim) - 1 - i[size_t(dim)];
                      return i;
                    });
                  },
              .k = 0,
              .grad_k = 0});
}

TEST(Arrange, Slice) {
  for (const Shape& shape : shapes())
    for (int dim = 0; dim < shape.ndim(); ++dim)
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, shape[dim]}, {shape[dim] / 3, shape[dim]}, {0, shape[dim] / 2},
                                       {shape[dim] / 2, shape[dim] / 2}})
        verify({.name = "slice " + to_text(shape) + " " + std::to_string(dim) + " from " + std::to_string(begin),
                .inputs = {real(shape)},
                .call = [dim, b = begin, e = end](const Tensors& in) { return slice(in[0], dim - in[0].ndim(), b, e); },
                .reference =
                    [dim, b = begin, e = end](const Arrays& in) {
                      return rearranged(in[0], in[0].shape.with(dim, e - b), [&](Index i) {
                        i[size_t(dim)] += b;
                        return i;
                      });
                    },
                .k = 0,
                .grad_k = 0});
}

TEST(Arrange, SliceOfRowsIsAView) {
  const Tensor x = zeros({4, 3});
  EXPECT_EQ(slice(x, 0, 1, 3).raw(), x.data<float>() + 3);
  EXPECT_NE(slice(x, 1, 0, 3).raw(), x.raw());
}

TEST(Arrange, Reshape) {
  for (const auto& [from, to] : {std::pair<Shape, Shape>{{6}, {2, 3}}, {{2, 3}, {3, 2}}, {{}, {1, 1}}, {{0, 3}, {7, 0}}})
    verify({.name = "reshape",
            .inputs = {real(from)},
            .call = [to = to](const Tensors& in) { return reshape(in[0], to); },
            .reference =
                [to = to](const Arrays& in) {
                  Array out(to);
                  out.values = in[0].values;
                  return out;
                },
            .k = 0,
            .grad_k = 0});
}

/// `count` parts of `shape` with sizes 1, 2, 0, 3, 1, ... along dim.
std::vector<Input> parts_of(const Shape& shape, int dim, int count) {
  std::vector<Input> parts;
  for (int i = 0; i < count; ++i) parts.push_back(real(shape.with(dim, std::array<int64_t, 4>{1, 2, 0, 3}[size_t(i % 4)])));
  return parts;
}

TEST(Arrange, Concat) {
  for (const int count : {1, 2, 3, 8, 9, 20})
    for (int dim = 0; dim < 3; ++dim)
      verify({.name = "concat of " + std::to_string(count) + " along " + std::to_string(dim),
              .inputs = parts_of({3, 2, 4}, dim, count),
              .call = [dim](const Tensors& in) { return concat(in, dim - 3); },
              .reference =
                  [dim](const Arrays& in) {
                    int64_t length = 0;
                    for (const Array& part : in) length += part.dim(dim);
                    Array out(in[0].shape.with(dim, length));
                    for (int64_t i = 0; i < out.numel(); ++i) {
                      Index at = index_of(out.shape, i);
                      size_t part = 0;
                      while (at[size_t(dim)] >= in[part].dim(dim)) at[size_t(dim)] -= in[part++].dim(dim);
                      out[i] = in[part][offset_of(in[part].shape, at)];
                    }
                    return out;
                  },
              .k = 0,
              .grad_k = 0});
}

TEST(Arrange, Stack) {
  for (int dim = 0; dim < 3; ++dim)
    verify({.name = "stack along " + std::to_string(dim),
            .inputs = {real({4, 3}), real({4, 3}), real({4, 3})},
            .call = [dim](const Tensors& in) { return stack({in[0], in[1], in[2]}, dim - 3); },
            .reference =
                [dim](const Arrays& in) {
                  Array out(dim == 0 ? Shape{3, 4, 3} : dim == 1 ? Shape{4, 3, 3} : Shape{4, 3, 3});
                  for (int64_t i = 0; i < out.numel(); ++i) {
                    const Index at = index_of(out.shape, i);
                    Index rest{};
                    for (size_t d = 0, to = 0; d < 3; ++d)
                      if (int(d) != dim) rest[to++] = at[d];
                    out[i] = in[size_t(at[size_t(dim)])][offset_of(in[0].shape, rest)];
                  }
                  return out;
                },
            .k = 0,
            .grad_k = 0});
}

TEST(Arrange, SplitUndoesConcat) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  const std::vector<Tensor> parts = split(x, 2, 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].to_vector<float>(), (std::vector<float>{1, 2, 5, 6}));
  EXPECT_TRUE(same_bits(concat(parts, 1), x));
}

TEST(Arrange, EveryDtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8}) {
    const Tensor x = cast(Tensor::from<int32_t>({0, 1, 2, 3, 4, 5}, {2, 3}), dtype);
    EXPECT_EQ(cast(transpose(x), DType::i32).to_vector<int32_t>(), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(cast(concat({x, x}, 1), DType::i32).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
    EXPECT_EQ(cast(slice(x, 1, 1, 2), DType::i32).to_vector<int32_t>(), (std::vector<int32_t>{1, 4}));
  }
}

TEST(Arrange, LongEnoughToFork) {
  verify({.name = "transpose",
          .inputs = {real({300, 211})},
          .call = [](const Tensors& in) { return transpose(in[0]); },
          .reference = [](const Arrays& in) { return rearranged(in[0], {211, 300}, [](Index i) { return Index{i[1], i[0]}; }); },
          .k = 0,
          .grad_k = 0,
          .smooth = false});
  verify({.name = "slice",
          .inputs = {real({1000, 70})},
          .call = [](const Tensors& in) { return slice(in[0], 1, 3, 67); },
          .reference =
              [](const Arrays& in) { return rearranged(in[0], {1000, 64}, [](Index i) { return Index{i[0], i[1] + 3}; }); },
          .k = 0,
          .grad_k = 0,
          .smooth = false});
}

// What is saved is the array at the time of the product: changing its base afterwards, even through a view, is an error.
TEST(Arrange, ChangesThroughAViewAreSeen) {
  Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2}), w = Tensor::from<float>({1, 0, 0, 1}, {2, 2});
  w.set_requires_grad();
  const Tensor rows = slice(x, 0, 0, 2);
  EXPECT_EQ(rows.version(), x.version());
  reshape(x, {4}).mutable_data<float>()[0] = 11;
  EXPECT_EQ(rows.version(), x.version());
  EXPECT_EQ(rows.data<float>()[0], 11);
}

TEST(Arrange, Errors) {
  const Tensor x = zeros({4, 3}), d = zeros({4, 3}, DType::f64);
  verify_errors({
      {[&] { reshape(x, {5}); }, "InvalidArgument: reshape: x has shape [4, 3], which does not fit into [5]"},
      {[&] { slice(x, 2, 0, 1); }, "InvalidArgument: slice: dimension 2 does not exist in shape [4, 3]"},
      {[&] { slice(x, -3, 0, 1); }, "InvalidArgument: slice: dimension -3 does not exist in shape [4, 3]"},
      {[&] { slice(x, 1, 2, 4); }, "InvalidArgument: slice: [2, 4) of dimension 1 is not within shape [4, 3]"},
      {[&] { slice(x, 0, 2, 1); }, "InvalidArgument: slice: [2, 1) of dimension 0 is not within shape [4, 3]"},
      {[&] { transpose(x, 0, 2); }, "InvalidArgument: transpose: dimension 2 does not exist in shape [4, 3]"},
      {[&] { transpose(zeros({3})); }, "InvalidArgument: transpose: x has shape [3] but needs two dimensions"},
      {[&] { permute(x, {0}); }, "InvalidArgument: permute: 1 dimensions given but x has shape [4, 3]"},
      {[&] { permute(x, {1, -1}); }, "InvalidArgument: permute: dimension 1 is given twice"},
      {[&] { concat(std::span<const Tensor>()); }, "InvalidArgument: concat: no tensor was given, one or more are needed"},
      {[&] { concat({x, zeros({4, 2})}, 0); },
       "InvalidArgument: concat: tensor 0 has shape [4, 3] and tensor 1 has [4, 2], which differ beyond dimension 0"},
      {[&] { concat({x, d}, 0); }, "InvalidArgument: concat: tensor 0 is f32 but tensor 1 is f64"},
      {[&] { stack({x, zeros({3, 4})}); },
       "InvalidArgument: stack: tensor 0 is f32 [4, 3] but tensor 1 is f32 [3, 4]"},
      {[&] { stack({x}, 3); }, "InvalidArgument: stack: dimension 3 does not exist when shape [4, 3] gets one more"},
      {[&] { stack({zeros({1, 1, 1, 1, 1, 1})}); },
       "InvalidArgument: stack: tensor 0 has shape [1, 1, 1, 1, 1, 1], which leaves no room for one more dimension"},
      {[&] { split(x, 2, 1); }, "InvalidArgument: split: dimension 1 of shape [4, 3] cannot be cut into 2 equal parts"},
  });
}

}  // namespace
}  // namespace tessera::test
