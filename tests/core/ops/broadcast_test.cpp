#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

// Two and three operands with shapes that broadcast.
namespace tessera::test {
namespace {

/// Element of `x` that stands under element `i` of `shape`.
const Real& under(const Array& x, const Shape& shape, int64_t i) {
  int64_t at = 0, run = 1;
  for (int d = 1; d <= shape.ndim(); ++d) {
    const int64_t index = i % shape[-d];
    i /= shape[-d];
    if (d > x.shape.ndim()) continue;
    if (x.shape[-d] != 1) at += index * run;
    run *= x.shape[-d];
  }
  return x[at];
}

Shape joined(const Shape& a, const Shape& b) {
  std::vector<int64_t> sizes;
  for (int d = std::max(a.ndim(), b.ndim()); d >= 1; --d) {
    const int64_t of_a = d <= a.ndim() ? a[-d] : 1, of_b = d <= b.ndim() ? b[-d] : 1;
    sizes.push_back(of_a == 1 ? of_b : of_a);
  }
  return Shape(sizes.data(), int(sizes.size()));
}

struct Pair {
  Shape a, b;
};

std::vector<Pair> pairs() {
  std::vector<Pair> out = {{{}, {}},
                           {{1}, {}},
                           {{}, {5}},
                           {{4, 3}, {3}},
                           {{3}, {4, 3}},
                           {{4, 3}, {4, 1}},
                           {{4, 1}, {4, 3}},
                           {{4, 1}, {1, 3}},
                           {{4, 3}, {1}},
                           {{2, 3, 4}, {3, 1}},
                           {{2, 3, 4}, {2, 1, 4}},
                           {{2, 1, 4}, {3, 1}},
                           {{2, 3, 1, 5}, {3, 4, 1}},
                           {{2, 1, 2, 1, 2, 1}, {1, 3, 1, 2, 1, 2}},
                           {{2, 2, 2, 2, 2, 2}, {2, 1, 2, 2, 1, 2}},
                           {{0, 3}, {3}},
                           {{1, 3}, {0, 1}},
                           {{5, 1, 1}, {1, 1, 1}},
                           {{1, 1}, {1}}};
  for (const int64_t width : kWidths) {
    out.push_back({{5, width}, {5, width}});
    out.push_back({{5, width}, {width}});
    out.push_back({{5, width}, {5, 1}});
  }
  return out;
}

using Op = Tensor (*)(const Tensor&, const Tensor&);

Case binary(const std::string& name, const Pair& pair, Op op, Real (*reference)(const Real&, const Real&), bool keeps) {
  Input a = real(pair.a, 0.5, 2), b = real(pair.b, 0.5, 2);
  if (keeps) {
    a = a.saved();
    b = b.saved();
  }
  return {.name = name + " " + to_text(pair.a) + " " + to_text(pair.b),
          .inputs = {a, b},
          .call = [op](const Tensors& in) { return op(in[0], in[1]); },
          .reference =
              [reference](const Arrays& in) {
                Array out(joined(in[0].shape, in[1].shape));
                for (int64_t i = 0; i < out.numel(); ++i)
                  out[i] = reference(under(in[0], out.shape, i), under(in[1], out.shape, i));
                return out;
              }};
}

TEST(Broadcast, Arithmetic) {
  for (const Pair& pair : pairs()) {
    verify(binary("add", pair, add, [](const Real& a, const Real& b) { return a + b; }, false));
    verify(binary("sub", pair, sub, [](const Real& a, const Real& b) { return a - b; }, false));
    verify(binary("mul", pair, mul, [](const Real& a, const Real& b) { return a * b; }, true));
    Case quotient = binary("div", pair, div, [](const Real& a, const Real& b) { return a / b; }, false);
    quotient.inputs[1] = real(pair.b, 1, 2).saved();
    quotient.saves_output = true;
    quotient.grad_k = 4;
    verify(quotient);
  }
}

TEST(Broadcast, MinimumAndMaximum) {
  for (const Pair& pair : pairs()) {
    // Few values, so that there are many ties: the first operand takes them.
    for (const bool largest : {false, true}) {
      Case c = binary(largest ? "maximum" : "minimum", pair, largest ? Op(maximum) : Op(minimum), nullptr, true);
      for (Input& input : c.inputs) {
        std::vector<double> values;
        for (int64_t i = 0; i < input.shape.numel(); ++i) values.push_back(double((i * 7 + int64_t(values.size()) / 3) % 4));
        input = given(input.shape, values).saved();
      }
      c.smooth = false;
      c.reference = [largest](const Arrays& in) {
        Array out(joined(in[0].shape, in[1].shape));
        for (int64_t i = 0; i < out.numel(); ++i) {
          const Real &a = under(in[0], out.shape, i), &b = under(in[1], out.shape, i);
          out[i] = (largest ? a >= b : a <= b) ? a : b;
        }
        return out;
      };
      verify(c);
    }
  }
}

TEST(Broadcast, NanWins) {
  const Tensor a = Tensor::from<float>({NAN, 1, NAN, -INFINITY}, {4}), b = Tensor::from<float>({2, NAN, NAN, INFINITY}, {4});
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const Op op : {Op(minimum), Op(maximum)})
      for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(op(a, b).data<float>()[i]));
    EXPECT_EQ(minimum(a, b).data<float>()[3], -INFINITY);
    EXPECT_EQ(maximum(a, b).data<float>()[3], INFINITY);
    EXPECT_EQ(equal(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 0, 0, 0}));
    EXPECT_EQ(not_equal(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 1, 1, 1}));
    EXPECT_EQ(less(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 0, 0, 1}));
    EXPECT_EQ(greater_equal(a, b).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 0, 0, 0}));
  }
}

TEST(Broadcast, Comparisons) {
  struct Comparison {
    const char* name;
    Op op;
    bool (*reference)(const Real&, const Real&);
  };
  const Comparison all[] = {
      {"equal", equal, [](const Real& a, const Real& b) { return a == b; }},
      {"not_equal", not_equal, [](const Real& a, const Real& b) { return !(a == b); }},
      {"less", less, [](const Real& a, const Real& b) { return a < b; }},
      {"less_equal", less_equal, [](const Real& a, const Real& b) { return a <= b; }},
      {"greater", greater, [](const Real& a, const Real& b) { return a > b; }},
      {"greater_equal", greater_equal, [](const Real& a, const Real& b) { return a >= b; }},
  };
  for (const Comparison& c : all)
    for (const Pair& pair : pairs())
      for (const DType dtype : {DType::f64, DType::i32, DType::i64})
        verify({.name = std::string(c.name) + " " + to_text(pair.a) + " " + to_text(pair.b),
                .inputs = {ids(pair.a, 3, dtype), ids(pair.b, 3, dtype)},
                .call = [op = c.op](const Tensors& in) { return op(in[0], in[1]); },
                .reference =
                    [of = c.reference](const Arrays& in) {
                      Array out(joined(in[0].shape, in[1].shape));
                      for (int64_t i = 0; i < out.numel(); ++i)
                        out[i] = of(under(in[0], out.shape, i), under(in[1], out.shape, i)) ? 1 : 0;
                      return out;
                    },
                .dtypes = {DType::f32}});
}

TEST(Broadcast, Where) {
  for (const Pair& pair : pairs())
    for (const Shape& shape : {pair.a, pair.b, joined(pair.a, pair.b)}) {
      Input mask = ids(shape, 2, DType::u8);
      if (shape == joined(pair.a, pair.b)) mask = mask.saved();  // else it is expanded first
      verify({.name = "where " + to_text(shape) + " " + to_text(pair.a) + " " + to_text(pair.b),
              .inputs = {mask, real(pair.a), real(pair.b)},
              .call = [](const Tensors& in) { return where(in[0], in[1], in[2]); },
              .reference =
                  [](const Arrays& in) {
                    Array out(joined(in[0].shape, joined(in[1].shape, in[2].shape)));
                    for (int64_t i = 0; i < out.numel(); ++i)
                      out[i] = under(in[under(in[0], out.shape, i).value != 0 ? 1 : 2], out.shape, i);
                    return out;
                  },
              .k = 0,
              .grad_k = 1});
    }
}

TEST(Broadcast, WhereHidesNan) {
  const Tensor mask = Tensor::from<uint8_t>({1, 0}, {2});
  EXPECT_EQ(where(mask, Tensor::from<float>({1, NAN}, {2}), Tensor::from<float>({NAN, 2}, {2})).to_vector<float>(),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(where(mask, Tensor::from<int64_t>({1, 2}, {2}), Tensor::from<int64_t>({7}, {1})).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 7}));
}

TEST(Broadcast, Expand) {
  for (const Pair& pair : pairs()) {
    const Shape shape = joined(pair.a, pair.b);
    verify({.name = "expand " + to_text(pair.a) + " to " + to_text(shape),
            .inputs = {real(pair.a)},
            .call = [shape](const Tensors& in) { return expand(in[0], shape); },
            .reference =
                [shape](const Arrays& in) {
                  Array out(shape);
                  for (int64_t i = 0; i < out.numel(); ++i) out[i] = under(in[0], shape, i);
                  return out;
                },
            .k = 0,
            .grad_k = 1});
    verify({.name = "sum_to " + to_text(shape) + " " + to_text(pair.a),
            .inputs = {real(shape)},
            .call = [a = pair.a](const Tensors& in) { return sum_to(in[0], a); },
            .reference =
                [a = pair.a](const Arrays& in) {
                  Array out(a);
                  for (int64_t i = 0; i < in[0].numel(); ++i) {
                    const Real* base = out.values.data();
                    const int64_t at = &under(out, in[0].shape, i) - base;
                    out[at] += in[0][i];
                  }
                  return out;
                },
            .grad_k = 0});
  }
}

TEST(Broadcast, LongEnoughToFork) {
  for (const Pair& pair : {Pair{{700, 129}, {129}}, {{700, 129}, {700, 1}}, {{90000}, {}}, {{300, 4, 65}, {300, 1, 65}}}) {
    Case c = binary("mul", pair, mul, [](const Real& a, const Real& b) { return a * b; }, true);
    c.smooth = false;
    verify(c);
  }
}

TEST(Broadcast, Errors) {
  const Tensor a = zeros({2, 3}), b = zeros({2}), d = zeros({2, 3}, DType::f64), mask = zeros({2, 3}, DType::u8);
  Tensor leaf = zeros({2});
  verify_errors({
      {[&] { add(a, b); }, "InvalidArgument: add: a has shape [2, 3] but b has shape [2]"},
      {[&] { div(a, d); }, "InvalidArgument: div: a is f32 but b is f64"},
      {[&] { mul(mask, mask); }, "Unsupported: mul: dtype u8 is not supported, use f32 or f64"},
      {[&] { greater(a, b); }, "InvalidArgument: greater: a has shape [2, 3] but b has shape [2]"},
      {[&] { less(mask, mask); }, "Unsupported: less: dtype u8 is not supported, use f32, f64, i32 or i64"},
      {[&] { where(a, a, a); }, "InvalidArgument: where: the condition is f32 but needs to be u8"},
      {[&] { where(mask, a, d); }, "InvalidArgument: where: a is f32 but b is f64"},
      {[&] { where(mask, a, b); }, "InvalidArgument: where: a has shape [2, 3] but b has shape [2]"},
      {[&] { where(zeros({3, 2}, DType::u8), a, a); },
       "InvalidArgument: where: the condition has shape [3, 2] but the values have [2, 3]"},
      {[&] { expand(a, Shape{3, 3}); }, "InvalidArgument: expand: x has shape [2, 3], which does not broadcast to [3, 3]"},
      {[&] { expand(a, Shape{3}); }, "InvalidArgument: expand: x has shape [2, 3], which does not broadcast to [3]"},
      {[&] { sum_to(a, Shape{2}); }, "InvalidArgument: sum_to: shape [2] does not broadcast to [2, 3]"},
      {[&] { sum_to(a, Shape{1, 2, 3}); }, "InvalidArgument: sum_to: shape [1, 2, 3] does not broadcast to [2, 3]"},
  });
}

}  // namespace
}  // namespace tessera::test
