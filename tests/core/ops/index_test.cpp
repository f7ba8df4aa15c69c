#include "tessera/core/ops/index.h"

#include <gtest/gtest.h>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

Case select_case(const Shape& shape, const Input& ids) {
  return {.name = "index_select " + to_text(shape) + " " + to_text(ids.shape),
          .inputs = {real(shape), Input(ids).saved()},
          .call = [](const Tensors& in) { return index_select(in[0], in[1]); },
          .reference =
              [](const Arrays& in) {
                Array out(in[0].shape.with(0, in[1].numel()));
                const int64_t width = in[0].numel() / std::max<int64_t>(1, in[0].dim(0));
                for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][in[1].id(i / width) * width + i % width];
                return out;
              },
          .k = 0,
          .grad_k = 4};
}

TEST(Index, Select) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    for (const int64_t width : kWidths) verify(select_case({6, width}, ids({9}, 6, dtype)));
    verify(select_case({5}, ids({12}, 5, dtype)));
    verify(select_case({4, 2, 3}, ids({3}, 4, dtype)));
    verify(select_case({4, 3}, ids({0}, 4, dtype)));
    verify(select_case({4, 0}, ids({3}, 4, dtype)));
    verify(select_case({0, 3}, ids({0}, 4, dtype)));
  }
  Case c = select_case({3000, 33}, ids({2000}, 3000));
  c.smooth = false;
  verify(c);
}

TEST(Index, OneHotAndItsErrors) {
  const Tensor ids = Tensor::from<int32_t>({2, 0}, {2});
  EXPECT_EQ(one_hot(ids, 3).to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(cast(ids, DType::i64), 3, DType::u8).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(cast(one_hot(ids, 3, DType::f16), DType::f32).to_vector<float>(), (std::vector<float>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(zeros({0}, DType::i32), 0).shape(), (Shape{0, 0}));
  const Tensor x = zeros({3, 2}), wrong = Tensor::from<int64_t>({0, 3, -1}, {3});
  verify_errors({
      {[&] { index_select(x, wrong); }, "InvalidArgument: index_select: ids[1] is 3 but needs to be in [0, 3)"},
      {[&] { index_select(x, Tensor::from<int32_t>({-1}, {1})); },
       "InvalidArgument: index_select: ids[0] is -1 but needs to be in [0, 3)"},
      {[&] { index_select(x, x); }, "InvalidArgument: index_select: ids have shape [3, 2] but need one dimension"},
      {[&] { index_select(x, zeros({2})); }, "InvalidArgument: index_select: ids are f32 but need to be i32 or i64"},
      {[&] { index_select(zeros({}), wrong); }, "InvalidArgument: index_select: x is a scalar and has no rows"},
      {[&] { one_hot(wrong, 2); }, "InvalidArgument: one_hot: ids[1] is 3 but needs to be in [0, 2)"},
      {[&] { one_hot(wrong, -1); }, "InvalidArgument: one_hot: -1 classes asked but needs 0 or more"},
      {[&] { cumsum(zeros({2}, DType::u8)); },
       "Unsupported: cumsum: dtype u8 is not supported, use f32, f64, i32 or i64"},
      {[&] { cumsum(x, 2); }, "InvalidArgument: cumsum: dimension 2 does not exist in shape [3, 2]"},
  });
}

TEST(Index, Cumsum) {
  for (const Shape& shape : {Shape{7}, {0}, {4, 3}, {2, 5, 3}, {3, 0, 2}, {2000, 17}})
    for (int dim = 0; dim < shape.ndim(); ++dim)
      verify({.name = "cumsum " + to_text(shape) + " " + std::to_string(dim),
              .inputs = {real(shape)},
              .call = [dim](const Tensors& in) { return cumsum(in[0], dim); },
              .reference =
                  [dim](const Arrays& in) {
                    Array out(in[0].shape);
                    const Lines lines = lines_of("", in[0].shape, dim);
                    for (int64_t i = 0; i < out.numel(); ++i) {
                      out[i] = in[0][i];
                      if (i / lines.inner % lines.length > 0) out[i] += out[i - lines.inner];
                    }
                    return out;
                  },
              .k = shape[dim] > 100 ? 200.0 : 4.0,
              .grad_k = shape[dim] > 100 ? 200.0 : 4.0,
              .smooth = shape[dim] < 100});
  EXPECT_EQ(cumsum(Tensor::from<int64_t>({3, 1, 4}, {3})).to_vector<int64_t>(), (std::vector<int64_t>{3, 4, 8}));
}

}  // namespace
}  // namespace tessera::test
