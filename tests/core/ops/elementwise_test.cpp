#include "tessera/core/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"

namespace tessera::test {
namespace {

/// Empty, below and above one vector, and above the size where loops go parallel.
std::vector<Shape> shapes() {
  std::vector<Shape> list = {{}, {0}, {4, 5, 0}, {1}, {2, 3, 4}, {300, 129}};
  for (const int64_t width : kWidths) list.push_back({5, width});
  return list;
}

template <class F>
std::function<Array(const Arrays&)> binary(F f) {
  return [f](const Arrays& in) {
    Array out(in[0].shape);
    for (int64_t i = 0; i < out.numel(); ++i) out[i] = f(in[0][i], in[1][i]);
    return out;
  };
}

TEST(Elementwise, Add) {
  for (const Shape& shape : shapes())
    verify({.name = "add " + to_text(shape),
            .inputs = {real(shape), real(shape)},
            .call = [](const Tensors& in) { return add(in[0], in[1]); },
            .reference = binary([](Real a, Real b) { return a + b; }),
            .k = 0,
            .grad_k = 0});
}

TEST(Elementwise, Sub) {
  for (const Shape& shape : shapes())
    verify({.name = "sub " + to_text(shape),
            .inputs = {real(shape), real(shape)},
            .call = [](const Tensors& in) { return sub(in[0], in[1]); },
            .reference = binary([](Real a, Real b) { return a - b; }),
            .k = 0,
            .grad_k = 0});
}

TEST(Elementwise, Mul) {
  for (const Shape& shape : shapes())
    verify({.name = "mul " + to_text(shape),
            .inputs = {real(shape).saved(), real(shape).saved()},
            .call = [](const Tensors& in) { return mul(in[0], in[1]); },
            .reference = binary([](Real a, Real b) { return a * b; }),
            .k = 0.25,
            .grad_k = 0.25});
}

TEST(Elementwise, TheSameTensorTwice) {
  const Shape shape{7, 3};
  verify({.name = "x + x",
          .inputs = {real(shape)},
          .call = [](const Tensors& in) { return add(in[0], in[0]); },
          .reference =
              [](const Arrays& in) {
                return binary([](Real a, Real b) { return a + b; })({in[0], in[0]});
              }});
  verify({.name = "x - x",
          .inputs = {real(shape)},
          .call = [](const Tensors& in) { return sub(in[0], in[0]); },
          .reference =
              [](const Arrays& in) {
                return binary([](Real a, Real b) { return a - b; })({in[0], in[0]});
              }});
  verify({.name = "x * x",
          .inputs = {real(shape).saved()},
          .call = [](const Tensors& in) { return mul(in[0], in[0]); },
          .reference =
              [](const Arrays& in) {
                return binary([](Real a, Real b) { return a * b; })({in[0], in[0]});
              }});
}

TEST(Elementwise, Scale) {
  for (const Shape& shape : shapes())
    for (const double factor : {0.0, -1.0, 0.1})
      verify({.name = "scale " + to_text(shape) + " by " + to_text(factor),
              .inputs = {real(shape)},
              .call = [=](const Tensors& in) { return scale(in[0], factor); },
              .reference =
                  [=](const Arrays& in) {
                    Array out(in[0].shape);
                    for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][i] * factor;
                    return out;
                  },
              .k = 0.5,  // the factor is rounded to the dtype, then the product
              .grad_k = 0.5});
}

TEST(Elementwise, Relu) {
  for (const Shape& shape : shapes())
    verify({.name = "relu " + to_text(shape),
            .inputs = {shape.numel() < 250 ? apart(shape) : real(shape)},
            .call = [](const Tensors& in) { return relu(in[0]); },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < out.numel(); ++i) out[i] = in[0][i] > 0 ? in[0][i] : Real(0);
                  return out;
                },
            .k = 0,
            .grad_k = 0,
            .smooth = shape.numel() < 250,
            .saves_output = true});
}

TEST(Elementwise, ReluAtTheKinkAndBeyond) {
  const double inf = INFINITY;
  verify({.name = "relu at 0",
          .inputs = {given({7}, {0, -0.0, 1e-300, -1e-300, 3, inf, -inf})},
          .call = [](const Tensors& in) { return relu(in[0]); },
          .reference =
              [](const Arrays& in) {
                Array out(in[0].shape);
                for (int64_t i = 0; i < 7; ++i) out[i] = in[0][i] > 0 ? in[0][i] : Real(0);
                return out;
              },
          .k = 0,
          .grad_k = 0,
          .smooth = false,
          .saves_output = true});
  verify({.name = "relu of NaN",
          .inputs = {given({2}, {NAN, -NAN}).no_grad()},
          .call = [](const Tensors& in) { return relu(in[0]); },
          .reference = [](const Arrays& in) { return in[0]; }});
}

TEST(Elementwise, AddBias) {
  std::vector<Shape> list = {{0, 3}, {4, 0}, {0, 0}, {1, 1}, {5000, 9}};
  for (const int64_t width : kWidths) list.push_back({6, width});
  list.push_back({400, 129});
  for (const Shape& shape : list)
    verify({.name = "add_bias " + to_text(shape),
            .inputs = {real(shape), real({shape[1]})},
            .call = [](const Tensors& in) { return add_bias(in[0], in[1]); },
            .reference =
                [](const Arrays& in) {
                  Array out(in[0].shape);
                  for (int64_t i = 0; i < out.dim(0); ++i)
                    for (int64_t j = 0; j < out.dim(1); ++j) out(i, j) = in[0](i, j) + in[1][j];
                  return out;
                },
            .k = 0.25,
            .grad_k = double(std::min<int64_t>(1024, shape[0] + 1))});  // f64 sums of up to 1024 rows in a row
}

TEST(Elementwise, SpecialValuesPassThrough) {
  const double inf = INFINITY;
  const std::vector<double> a = {inf, inf, -inf, NAN, 0, 1e38, 3e38}, b = {1, -inf, -inf, 1, NAN, 2e38, 3e38};
  const auto two = [&](auto call, auto f) {
    verify({.name = "special values",
            .inputs = {given({7}, a).no_grad(), given({7}, b).no_grad()},
            .call = [=](const Tensors& in) { return call(in[0], in[1]); },
            .reference = binary(f),
            .k = 0});
  };
  two(add, [](Real x, Real y) { return x + y; });
  two(sub, [](Real x, Real y) { return x - y; });
  two(mul, [](Real x, Real y) { return x * y; });
}

TEST(Elementwise, AddInPlace) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t count : {0, 1, 17, 70'000}) {
      const Tensors in = make_inputs({real({count}), real({count})}, dtype);
      Tensor a = clone(in[0]);
      const void* memory = a.raw();
      const uint64_t version = a.version();
      add_in_place(a, in[1]);
      EXPECT_TRUE(same_bits(a, add(in[0], in[1])));
      EXPECT_EQ(a.raw(), memory);
      EXPECT_EQ(a.version(), version + 1);
      add_in_place(a, a);
      EXPECT_TRUE(same_bits(a, scale(add(in[0], in[1]), 2)));
    }
}

TEST(Elementwise, AddInPlaceOnTheWayToAGradient) {
  Tensor leaf = ones({2}), constant = ones({2});
  leaf.set_requires_grad();
  Tensor computed = scale(leaf, 2);
  const std::string refused = "InvalidArgument: add_in_place: a tensor on the way to a gradient cannot be changed in place";
  verify_errors({{[&] { add_in_place(leaf, constant); }, refused},
                 {[&] { add_in_place(computed, constant); }, refused},
                 {[&] { add_in_place(constant, leaf); }, refused}});
  EXPECT_EQ(constant.to_vector<float>(), (std::vector<float>{1, 1}));
  const NoGrad off;  // an optimiser's step
  add_in_place(leaf, constant);
  EXPECT_EQ(leaf.to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Elementwise, Errors) {
  const Tensor x = ones({2, 3}), y = ones({3, 2}), d = ones({2, 3}, DType::f64), i = ones({2, 3}, DType::i32);
  const Tensor h = ones({2, 3}, DType::bf16);
  Tensor target = ones({2, 3});
  verify_errors({
      {[&] { add(x, y); }, "InvalidArgument: add: a has shape [2, 3] but b has shape [3, 2]"},
      {[&] { sub(x, y); }, "InvalidArgument: sub: a has shape [2, 3] but b has shape [3, 2]"},
      {[&] {
         mul(x, ones({2, 3, 1}));
       },
       "InvalidArgument: mul: a has shape [2, 3] but b has shape [2, 3, 1]"},
      {[&] { add(x, d); }, "InvalidArgument: add: a is f32 but b is f64"},
      {[&] { add(i, i); }, "Unsupported: add: dtype i32 is not supported, use f32 or f64"},
      {[&] { mul(h, x); }, "InvalidArgument: mul: a is bf16 but b is f32"},
      {[&] { add_in_place(target, y); }, "InvalidArgument: add_in_place: a has shape [2, 3] but b has shape [3, 2]"},
      {[&] { add_in_place(target, d); }, "InvalidArgument: add_in_place: a is f32 but b is f64"},
      {[&] { scale(i, 2); }, "Unsupported: scale: dtype i32 is not supported, use f32 or f64"},
      {[&] { add_bias(x, ones({2})); },
       "InvalidArgument: add_bias: x has shape [2, 3] and bias [2] but they need to be [N, F] and [F]"},
      {[&] { add_bias(ones({3}), ones({3})); },
       "InvalidArgument: add_bias: x has shape [3] and bias [3] but they need to be [N, F] and [F]"},
      {[&] {
         add_bias(x, ones({1, 3}));
       },
       "InvalidArgument: add_bias: x has shape [2, 3] and bias [1, 3] but they need to be [N, F] and [F]"},
      {[&] { add_bias(x, ones({3}, DType::f64)); }, "InvalidArgument: add_bias: x is f32 but bias is f64"},
      {[&] { add(Tensor(), x); }, "InvalidArgument: tensor: an undefined tensor was used"},
      {[&] { add(x, Tensor()); }, "InvalidArgument: tensor: an undefined tensor was used"},
  });
}

}  // namespace
}  // namespace tessera::test
