#include "tessera/core/ops/grouped_matmul.h"

#include <gtest/gtest.h>

#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

Tensor offsets_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> offsets = {0};
  for (const int64_t n : sizes) offsets.push_back(offsets.back() + n);
  return Tensor::from(offsets, Shape{int64_t(offsets.size())});
}

void verify_groups(const std::vector<int64_t>& sizes, int64_t k, int64_t n, bool with_reference = true) {
  const Tensor offsets = offsets_of(sizes);
  const int64_t groups = int64_t(sizes.size()), m = offsets.data<int64_t>()[groups];
  for (const bool tb : {false, true}) {
    Case c{.name = "grouped_matmul of " + std::to_string(groups) + " groups, " + to_text(Shape{m, k, n}) +
                   (tb ? " b transposed" : ""),
           .inputs = {real({m, k}).saved(), real(tb ? Shape{groups, n, k} : Shape{groups, k, n}).saved()},
           .call = [=](const Tensors& in) { return grouped_matmul(in[0], offsets, in[1], {.transpose_b = tb}); },
           .reference = nullptr,
           .k = double(k) / 4 + 1,
           .grad_k = double(std::max(m, n)) / 4 + 1,
           .smooth = with_reference};
    if (with_reference)
      c.reference = [=](const Arrays& in) {
        Array out(Shape{m, n});
        for (int64_t g = 0; g < groups; ++g)
          for (int64_t i = offsets.data<int64_t>()[g]; i < offsets.data<int64_t>()[g + 1]; ++i)
            for (int64_t j = 0; j < n; ++j)
              for (int64_t l = 0; l < k; ++l)
                out[i * n + j] += in[0][i * k + l] * in[1][(g * (tb ? n : k) + (tb ? j : l)) * (tb ? k : n) + (tb ? l : j)];
        return out;
      };
    verify(c);
  }
}

TEST(GroupedMatmul, GroupsOfAllSizes) {
  for (const int64_t width : kWidths) verify_groups({3, 0, 1, 5}, 4, width);
  verify_groups({0, 0, 7, 0}, 17, 3);
  verify_groups({1, 1, 1, 1, 1, 1, 1, 1, 1}, 5, 2);
  verify_groups({255, 256, 257}, 3, 2);
}

TEST(GroupedMatmul, Empty) {
  verify_groups({}, 3, 2);
  verify_groups({0, 0}, 3, 2);
  verify_groups({2, 3}, 0, 2);
  verify_groups({2, 3}, 3, 0);
}

/// A gradient of b of more than one piece, and tiles on several threads.
TEST(GroupedMatmul, LongGroups) {
  verify_groups({2049, 5, 4097}, 2, 1);
  verify_groups({9000, 300, 20000}, 24, 40, false);
}

TEST(GroupedMatmul, Errors) {
  const Tensor a = ones({3, 2}), b = ones({2, 2, 4}), offsets = offsets_of({1, 2});
  const auto call = [](const Tensor& x, const Tensor& o, const Tensor& w) { return [=] { grouped_matmul(x, o, w); }; };
  const auto list = [](const std::vector<int64_t>& values) { return Tensor::from(values, Shape{int64_t(values.size())}); };
  verify_errors({
      {call(Tensor(), offsets, b), "InvalidArgument: grouped_matmul: a, offsets or b is undefined"},
      {call(ones({3}), offsets, b), "InvalidArgument: grouped_matmul: a has shape [3] but needs two dimensions"},
      {call(ones({3, 2}, DType::f64), offsets, b), "InvalidArgument: grouped_matmul: a is f64 but b is f32"},
      {call(ones({3, 2}, DType::i32), offsets, ones({2, 2, 4}, DType::i32)),
       "Unsupported: grouped_matmul: dtype i32 is not supported, use f32 or f64"},
      {call(a, ones({3}), b), "InvalidArgument: grouped_matmul: offsets is f32 [3] but needs to be i64 [groups + 1]"},
      {call(a, list({1, 2, 3}), b), "InvalidArgument: grouped_matmul: offsets[0] is 1 but needs to be 0"},
      {call(a, list({0, 4, 3}), b),
       "InvalidArgument: grouped_matmul: offsets[2] is 3 but offsets[1] before it is 4; offsets must not fall"},
      {call(a, list({0, 1, 2}), b), "InvalidArgument: grouped_matmul: offsets ends at 2 but a has 3 rows"},
      {call(a, offsets, ones({3, 2, 4})),
       "InvalidArgument: grouped_matmul: b has shape [3, 2, 4] but 2 groups of rows of 2 need [G, K, N]"},
      {call(a, offsets, ones({2, 3, 4})),
       "InvalidArgument: grouped_matmul: b has shape [2, 3, 4] but 2 groups of rows of 2 need [G, K, N]"},
      {[&] {
         grouped_outer(a, offsets, ones({2, 4}));
       },
       "InvalidArgument: grouped_outer: c has shape [2, 4] but a has 3 rows"},
  });
}

}  // namespace
}  // namespace tessera::test
