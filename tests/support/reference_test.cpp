#include "tessera/tests/support/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/tolerance.h"

namespace tessera::test {
namespace {

struct Slope {
  double value, magnitude, slope, slope_magnitude;
};

template <class F>
Slope at(double x, F f) {
  Tape tape;
  Array in{Shape{}};
  in[0] = Real(x);
  tape.watch(in);
  Array out{Shape{}};
  out[0] = f(in[0]);
  const Tape::Gradient gradient = tape.gradients(out, {1.0}, {&in})[0];
  return {double(out[0].value), out[0].magnitude, double(gradient.value[0]), gradient.magnitude[0]};
}

TEST(Reference, SlopesOfEveryFunction) {
  for (const double x : {-1.5, -0.25, 0.5, 1.0, 2.0}) {
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return exp(v); }).slope, std::exp(x));
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return tanh(v); }).slope, double(1 - std::pow(std::tanh((long double)x), 2)));
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return v * v * v; }).slope, 3 * x * x);
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return 1 / v; }).slope, -1 / (x * x));
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return (v + 1) / v; }).slope, -1 / (x * x));
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return -v - v; }).slope, -2);
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return abs(v); }).slope, x < 0 ? -1 : 1);
    if (x < 0) continue;
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return log(v); }).slope, 1 / x);
    EXPECT_DOUBLE_EQ(at(x, [](Real v) { return sqrt(v); }).slope, 0.5 / std::sqrt(x));
  }
}

TEST(Reference, MagnitudeIsTheSumOfAbsoluteTerms) {
  const Slope s = at(-3, [](Real v) { return 2 * v * v + 5 * v - 1; });
  EXPECT_EQ(s.value, 2);
  EXPECT_EQ(s.magnitude, 18 + 15 + 1);
  EXPECT_EQ(s.slope, -7);
  EXPECT_EQ(s.slope_magnitude, 6 + 6 + 5);
}

// A rounding error in the argument of exp is multiplied by the argument; a bound that forgot it would be too tight.
TEST(Reference, MagnitudeOfFunctionsCarriesTheArgument) {
  EXPECT_DOUBLE_EQ(at(10, [](Real v) { return exp(v); }).magnitude, std::exp(10.0) * 11);
  EXPECT_DOUBLE_EQ(at(100, [](Real v) { return exp(v - 100); }).magnitude, 201);
  EXPECT_DOUBLE_EQ(at(1, [](Real v) { return log(v); }).magnitude, 1);
  EXPECT_DOUBLE_EQ(at(4, [](Real v) { return sqrt(v); }).magnitude, 2);
}

TEST(Reference, UnusedAndRepeatedInputs) {
  Tape tape;
  Array x{Shape{2}};
  x[0] = 3;
  x[1] = 4;
  tape.watch(x);
  Array out{Shape{2}};
  out[0] = x[0] * x[0];
  out[1] = 7;  // a constant
  const Tape::Gradient g = tape.gradients(out, {0.5, 100}, {&x})[0];
  EXPECT_EQ(g.value[0], 3);
  EXPECT_EQ(g.value[1], 0);
}

TEST(Tolerance, Compare) {
  const double inf = INFINITY, nan = NAN;
  EXPECT_EQ(compare(1, 1, DType::f32, 0, 1), "");
  EXPECT_EQ(compare(double(0.1f), 0.1L, DType::f32, 0, 1), "");
  EXPECT_NE(compare(std::nextafter(0.1f, 1.0f), 0.1L, DType::f32, 0, 1), "");
  EXPECT_EQ(compare(1 + 0x1p-22, 1, DType::f32, 1, 1), "");
  EXPECT_NE(compare(1 + 0x1p-21, 1, DType::f32, 1, 1), "");
  EXPECT_EQ(compare(1 + 0x1p-21, 1, DType::f32, 1, 2), "");
  EXPECT_NE(compare(1 + 0x1p-50, 1, DType::f64, 1, 1), "");
  EXPECT_EQ(compare(nan, (long double)nan, DType::f32, 1, 1), "");
  EXPECT_EQ(compare(inf, (long double)inf, DType::f32, 1, inf), "");
  EXPECT_NE(compare(-inf, (long double)inf, DType::f32, 1, inf), "");
  EXPECT_NE(compare(nan, 1, DType::f32, 1, 1), "");
  EXPECT_NE(compare(1, (long double)nan, DType::f32, 1, 1), "");
  EXPECT_NE(compare(1, 2, DType::f32, 1, inf), "");
  EXPECT_NE(compare(3, 4, DType::i32, 5, 100), "");
  EXPECT_EQ(compare(0x1p-149, 0, DType::f32, 1, 0), "");
  EXPECT_EQ(compare(2, 3, DType::f64, 1, 1), "is 2 but needs 3 within 4.44e-16 (off by 1)");
}

TEST(Tolerance, UlpError) {
  EXPECT_EQ(ulp_error(1, 1), 0);
  EXPECT_EQ(ulp_error(1 + 0x1p-23f, 1), 1);
  EXPECT_EQ(ulp_error(1, 1 + 0x1p-24), 0.5);
  EXPECT_EQ(ulp_error(0x1p-149f, 0), 1);
  EXPECT_EQ(ulp_error(NAN, NAN), 0);
  EXPECT_EQ(ulp_error(INFINITY, INFINITY), 0);
  EXPECT_EQ(ulp_error(INFINITY, 1e300), 0);
  EXPECT_EQ(ulp_error(1, INFINITY), INFINITY);
}

TEST(Graphs, IdsAreInRangeAndShapesAsNamed) {
  for (const EdgeList& g : graphs()) {
    ASSERT_EQ(g.src.size(), g.dst.size()) << g.name;
    for (int64_t e = 0; e < g.num_edges(); ++e) {
      ASSERT_TRUE(g.src[size_t(e)] >= 0 && g.src[size_t(e)] < g.num_nodes) << g.name;
      ASSERT_TRUE(g.dst[size_t(e)] >= 0 && g.dst[size_t(e)] < g.num_nodes) << g.name;
    }
  }
  EXPECT_EQ(std::count(graph("hub").dst.begin(), graph("hub").dst.end(), 3), 8200);
  EXPECT_EQ(std::count(graph("empty_ends").dst.begin(), graph("empty_ends").dst.end(), 0), 0);
  EXPECT_EQ(std::count(graph("empty_ends").dst.begin(), graph("empty_ends").dst.end(), 6), 0);
  EXPECT_EQ(graph("empty").num_nodes, 0);
  EXPECT_EQ(graph("one_node").num_edges(), 0);
  EXPECT_GT(std::count(graph("rmat").dst.begin(), graph("rmat").dst.end(), 0), 40);
}

}  // namespace
}  // namespace tessera::test
