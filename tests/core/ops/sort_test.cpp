#include "tessera/core/ops/sort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

/// By repeated choice of the first best that is left.
Array chosen(const Array& x, int dim, int64_t k, bool descending, bool indices) {
  Array out(x.shape.with(dim, k));
  const Lines lines = lines_of("", x.shape, dim);
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    const int64_t outer = line / lines.inner, column = line % lines.inner;
    std::vector<bool> taken(size_t(lines.length), false);
    for (int64_t r = 0; r < k; ++r) {
      int64_t best = -1;
      const auto at = [&](int64_t i) -> const Real& { return x[(outer * lines.length + i) * lines.inner + column]; };
      for (int64_t i = 0; i < lines.length; ++i)
        if (!taken[size_t(i)] && (best < 0 || (descending ? at(i) > at(best) : at(i) < at(best)))) best = i;
      taken[size_t(best)] = true;
      out[(outer * k + r) * lines.inner + column] = indices ? Real(double(best)) : at(best);
    }
  }
  return out;
}

std::vector<Shape> shapes() {
  std::vector<Shape> out = {{1}, {7}, {3, 0}, {0, 3}, {2, 5, 3}, {40, 40}};
  for (const int64_t width : kWidths) out.push_back({2, width});
  return out;
}

TEST(Sort, ValuesAndGradients) {
  for (const bool descending : {false, true})
    for (const Shape& shape : shapes())
      for (int dim = 0; dim < shape.ndim(); ++dim)
        for (const int64_t k : {shape[dim], (shape[dim] + 2) / 3})
          verify({.name = "sort " + to_text(shape) + " " + std::to_string(dim) + " " + std::to_string(k),
                  .inputs = {apart(shape)},
                  .call =
                      [=](const Tensors& in) {
                        return k == in[0].dim(dim) ? sort(in[0], dim, descending).values
                                                   : topk(in[0], k, dim, descending).values;
                      },
                  .reference = [=](const Arrays& in) { return chosen(in[0], dim, k, descending, false); },
                  .k = 0,
                  .grad_k = 0,
                  .smooth = false});
}

TEST(Sort, EqualElementsKeepTheirOrder) {
  for (const bool descending : {false, true})
    for (const Shape& shape : shapes())
      for (const DType dtype : {DType::i32, DType::i64})
        for (const bool whole : {false, true}) {
          const int64_t k = whole ? shape[-1] : (shape[-1] + 1) / 2;
          verify({.name = "indices of sort " + to_text(shape),
                  .inputs = {ids(shape, 4, dtype)},
                  .call =
                      [=](const Tensors& in) {
                        return whole ? sort(in[0], -1, descending).indices : topk(in[0], k, -1, descending).indices;
                      },
                  .reference = [=](const Arrays& in) { return chosen(in[0], in[0].shape.ndim() - 1, k, descending, true); },
                  .dtypes = {DType::f32}});
        }
}

// Every length at which another way is taken, checked against its own definition: a stable order of the same elements.
TEST(Sort, LongLines) {
  for (const int64_t n : {95, 96, 700, 1 << 14, (1 << 17) - 1, (1 << 17) + 12345})
    for (const bool descending : {false, true})
      for (const bool many_ties : {false, true}) {
        Tensor x = Tensor::empty({n});
        for (int64_t i = 0; i < n; ++i) {
          const uint32_t hash = uint32_t(i * 2654435761u);
          x.mutable_data<float>()[i] = many_ties ? float(int(hash >> 28) - 8) : float(hash) - 2e9f;
        }
        if (n > 600) {
          x.mutable_data<float>()[500] = -0.0f;
          x.mutable_data<float>()[501] = NAN;
          x.mutable_data<float>()[599] = -INFINITY;
        }
        const auto [values, indices] = sort(x, 0, descending);
        const float *v = values.data<float>(), *from = x.data<float>();
        const int32_t* at = indices.data<int32_t>();
        std::vector<bool> seen(size_t(n), false);
        const auto comes_before = [&](float a, float b) {
          return descending ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
        };
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_TRUE(at[i] >= 0 && at[i] < n && !seen[size_t(at[i])]) << n << " " << i;
          seen[size_t(at[i])] = true;
          ASSERT_EQ(std::memcmp(&v[i], &from[at[i]], sizeof(float)), 0) << n << " " << i;
          if (i == 0) continue;
          ASSERT_FALSE(comes_before(v[i], v[i - 1])) << n << " " << i;
          ASSERT_TRUE(comes_before(v[i - 1], v[i]) || at[i - 1] < at[i]) << n << " " << i;
        }
        for (const int64_t k : {int64_t(0), int64_t(1), n / 16, n / 2}) {
          const auto top = topk(x, k, 0, descending);
          ASSERT_EQ(std::memcmp(top.indices.data<int32_t>(), at, size_t(k) * sizeof(int32_t)), 0) << n << " " << k;
          ASSERT_EQ(std::memcmp(top.values.data<float>(), v, size_t(k) * sizeof(float)), 0) << n << " " << k;
        }
      }
}

TEST(Sort, LongLinesOnSeveralThreads) {
  verify({.name = "sort in blocks",
          .inputs = {real({1 << 18})},
          .call = [](const Tensors& in) { return sort(in[0]).values; },
          .reference = nullptr,
          .smooth = false});
}

TEST(Sort, NanIsLargest) {
  const Tensor x = Tensor::from<float>({NAN, 1, INFINITY, NAN, -INFINITY}, {5});
  EXPECT_EQ(sort(x).indices.to_vector<int32_t>(), (std::vector<int32_t>{4, 1, 2, 0, 3}));
  EXPECT_EQ(sort(x, 0, true).indices.to_vector<int32_t>(), (std::vector<int32_t>{0, 3, 2, 1, 4}));
  EXPECT_EQ(topk(x, 1).indices.to_vector<int32_t>(), (std::vector<int32_t>{0}));
}

TEST(Sort, Errors) {
  const Tensor x = zeros({4, 3});
  verify_errors({
      {[&] { sort(x, 2); }, "InvalidArgument: sort: dimension 2 does not exist in shape [4, 3]"},
      {[&] { topk(x, 4); }, "InvalidArgument: topk: k is 4 but needs to be in [0, 3]"},
      {[&] { topk(x, -1); }, "InvalidArgument: topk: k is -1 but needs to be in [0, 3]"},
      {[&] { sort(cast(x, DType::u8)); }, "Unsupported: sort: dtype u8 is not supported, use f32, f64, i32 or i64"},
  });
}

}  // namespace
}  // namespace tessera::test
