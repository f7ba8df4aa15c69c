#include "tessera/core/ops/unary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/graphs.h"
#include "tessera/tests/support/proof.h"

namespace tessera::test {
namespace {

/// By its series, which shares nothing with the kernels' polynomials.
Real erf(const Real& x) {
  const Real z = x * x;
  Real power = x, sum = x;
  for (int n = 1; n < 40; ++n) {
    power = power * z * Real(-1.0 / n);
    sum += power * Real(1.0 / (2 * n + 1));
  }
  return sum * Real(2 / std::sqrt(std::acos(-1.0)));
}

/// pi to the precision of the references.
const double kPi = std::acos(-1.0);

struct Function {
  const char* name;
  Tensor (*op)(const Tensor&);
  Real (*reference)(const Real&);
  double low = -3, high = 3;
  enum { input, output, nothing } keeps = input;
  double k = 2;
  bool smooth = true;
};

const Function kFunctions[] = {
    {"exp", [](const Tensor& x) { return exp(x); }, [](const Real& x) { return exp(x); }, -3, 3, Function::output},
    {"log", [](const Tensor& x) { return log(x); }, [](const Real& x) { return log(x); }, 0.1, 9},
    {"sqrt", [](const Tensor& x) { return sqrt(x); }, [](const Real& x) { return sqrt(x); }, 0.1, 9, Function::output},
    {"tanh", [](const Tensor& x) { return tanh(x); }, [](const Real& x) { return tanh(x); }, -3, 3, Function::output},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }, [](const Real& x) { return Real(1) / (Real(1) + exp(-x)); }, -4,
     4, Function::output},
    {"relu", [](const Tensor& x) { return relu(x); }, [](const Real& x) { return x > 0 ? x : Real(0); }, -3, 3,
     Function::output, 0, false},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.25); },
     [](const Real& x) { return x > 0 ? x : x * Real(0.25); }, -3, 3, Function::input, 1, false},
    {"elu", [](const Tensor& x) { return elu(x, 1.5); },
     [](const Real& x) { return x > 0 ? x : Real(1.5) * (exp(x) - Real(1)); }, -3, 3, Function::output, 2, false},
    {"gelu", [](const Tensor& x) { return gelu(x); },
     [](const Real& x) { return Real(0.5) * x * (Real(1) + erf(x * Real(std::sqrt(0.5)))); }, -2, 2},
    {"gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); },
     [](const Real& x) {
       return Real(0.5) * x * (Real(1) + tanh(Real(std::sqrt(2 / kPi)) * (x + Real(0.044715) * x * x * x)));
     },
     -2, 2, Function::input, 3},
    {"softplus", [](const Tensor& x) { return softplus(x); }, [](const Real& x) { return log(Real(1) + exp(x)); }},
    {"abs", [](const Tensor& x) { return abs(x); }, [](const Real& x) { return abs(x); }, -3, 3, Function::input, 0, false},
    {"neg", [](const Tensor& x) { return neg(x); }, [](const Real& x) { return -x; }, -3, 3, Function::nothing, 0},
    {"square", [](const Tensor& x) { return square(x); }, [](const Real& x) { return x * x; }, -3, 3, Function::input, 1},
    {"clamp", [](const Tensor& x) { return clamp(x, -0.7, 1.3); },
     [](const Real& x) { return x < -0.7  ? Real(-0.7)
                                : x > 1.3 ? Real(1.3)
                                          : x; }, -3, 3, Function::input, 1, false},
    {"pow 0", [](const Tensor& x) { return pow(x, 0); }, [](const Real& x) { return x * Real(0) + Real(1); }, -3, 3},
    {"pow 1", [](const Tensor& x) { return pow(x, 1); }, [](const Real& x) { return x; }, -3, 3, Function::nothing, 0},
    {"pow 2", [](const Tensor& x) { return pow(x, 2); }, [](const Real& x) { return x * x; }, -3, 3, Function::input, 1},
    {"pow 3", [](const Tensor& x) { return pow(x, 3); }, [](const Real& x) { return x * x * x; }},
    {"pow 0.5", [](const Tensor& x) { return pow(x, 0.5); }, [](const Real& x) { return sqrt(x); }, 0.1, 9,
     Function::output},
    {"pow -1", [](const Tensor& x) { return pow(x, -1); }, [](const Real& x) { return Real(1) / x; }, 0.8, 4},
    {"pow -0.5", [](const Tensor& x) { return pow(x, -0.5); }, [](const Real& x) { return Real(1) / sqrt(x); }, 0.8, 4},
    {"pow 1.75", [](const Tensor& x) { return pow(x, 1.75); }, [](const Real& x) { return exp(Real(1.75) * log(x)); }, 0.8,
     4},
    {"scale", [](const Tensor& x) { return scale(x, -1.25); }, [](const Real& x) { return x * Real(-1.25); }, -3, 3,
     Function::nothing, 1},
    {"shift", [](const Tensor& x) { return shift(x, 0.75); }, [](const Real& x) { return x + Real(0.75); }, -3, 3,
     Function::nothing, 1},
};

Case case_of(const Function& f, const Shape& shape) {
  Input input = f.smooth ? real(shape, f.low, f.high) : apart(shape, f.low, f.high);
  if (f.keeps == Function::input) input = input.saved();
  return {.name = std::string(f.name) + " " + to_text(shape),
          .inputs = {input},
          .call = [op = f.op](const Tensors& in) { return op(in[0]); },
          .reference =
              [of = f.reference](const Arrays& in) {
                Array out(in[0].shape);
                for (int64_t i = 0; i < out.numel(); ++i) out[i] = of(in[0][i]);
                return out;
              },
          .k = f.k,
          .grad_k = 2 * f.k,
          .smooth = f.smooth,
          .saves_output = f.keeps == Function::output};
}

TEST(Unary, EveryFunction) {
  for (const Function& f : kFunctions) {
    for (const int64_t width : kWidths) verify(case_of(f, {width}));
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 0, 3}, Shape{3, 5, 2}}) verify(case_of(f, shape));
  }
}

TEST(Unary, LongEnoughToFork) {
  for (const char* name : {"exp", "relu"})
    for (const Function& f : kFunctions)
      if (f.name == std::string(name)) {
        Case c = case_of(f, {3, 20000});
        c.inputs[0] = real({3, 20000});
        c.smooth = false;
        verify(c);
      }
}

/// f of the values, in both dtypes and every instruction set, equals `expected` (NaN equals NaN).
void expect_values(const char* name, const std::function<Tensor(const Tensor&)>& f, const std::vector<double>& x,
                   const std::vector<double>& expected, double within = 0) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const DType dtype : {DType::f32, DType::f64}) {
      const std::vector<double> y =
          cast(f(cast(Tensor::from(x, {int64_t(x.size())}), dtype)), DType::f64).to_vector<double>();
      for (size_t i = 0; i < x.size(); ++i) {
        const bool same = std::isnan(expected[i])   ? std::isnan(y[i])
                          : std::isinf(expected[i]) ? y[i] == expected[i]
                                                    : std::fabs(y[i] - expected[i]) <= within * std::fabs(expected[i]);
        EXPECT_TRUE(same) << name << "(" << x[i] << ") is " << y[i] << " but needs " << expected[i] << " in "
                          << to_text(dtype) << " " << tessera::name(isa);
      }
    }
  }
}

TEST(Unary, SpecialValues) {
  const double inf = INFINITY, nan = NAN;
  expect_values("exp", [](const Tensor& x) { return exp(x); }, {inf, -inf, nan, 0, 1000, -1000}, {inf, 0, nan, 1, inf, 0});
  expect_values("log", [](const Tensor& x) { return log(x); }, {inf, 0, -0.0, -1, nan, 1}, {inf, -inf, -inf, nan, nan, 0});
  expect_values(
      "log of a subnormal", [](const Tensor& x) { return log(x); }, {0x1p-140}, {-97.04060527839233}, 3e-7);
  expect_values("sqrt", [](const Tensor& x) { return sqrt(x); }, {inf, 0, -1, nan, 4}, {inf, 0, nan, nan, 2});
  expect_values("tanh", [](const Tensor& x) { return tanh(x); }, {inf, -inf, nan, 0, 50, -50}, {1, -1, nan, 0, 1, -1});
  expect_values("sigmoid", [](const Tensor& x) { return sigmoid(x); }, {inf, -inf, nan, 0, 200, -2000},
                {1, 0, nan, 0.5, 1, 0});
  expect_values("relu", [](const Tensor& x) { return relu(x); }, {inf, -inf, nan, 0}, {inf, 0, nan, 0});
  expect_values("leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.5); }, {inf, -inf, nan, -2},
                {inf, -inf, nan, -1});
  expect_values("elu", [](const Tensor& x) { return elu(x); }, {inf, -inf, nan, 0, -200}, {inf, -1, nan, 0, -1});
  expect_values(
      "elu near 0", [](const Tensor& x) { return elu(x); }, {-1e-6, -1e-3}, {-9.999995e-7, -9.995001666e-4}, 1e-6);
  expect_values("gelu", [](const Tensor& x) { return gelu(x); }, {inf, nan, 0, 20, -20}, {inf, nan, 0, 20, 0});
  expect_values("gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); }, {inf, nan, 0, 20, -20}, {inf, nan, 0, 20, 0});
  expect_values("softplus", [](const Tensor& x) { return softplus(x); }, {inf, -inf, nan, 1000, -1000},
                {inf, 0, nan, 1000, 0});
  expect_values(
      "softplus far left", [](const Tensor& x) { return softplus(x); }, {-20}, {2.0611536181902e-9}, 1e-6);
  expect_values("abs", [](const Tensor& x) { return abs(x); }, {inf, -inf, nan, -0.0}, {inf, inf, nan, 0});
  expect_values("sign", [](const Tensor& x) { return sign(x); }, {inf, -inf, nan, 0, 3}, {1, -1, nan, 0, 1});
  expect_values("clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, {inf, -inf, nan, 0}, {2, -1, nan, 0});
  expect_values("pow", [](const Tensor& x) { return pow(x, -1); }, {inf, -inf, nan, 0}, {0, 0, nan, inf});
}

TEST(Unary, GradientsAtKinks) {
  const auto gradient = [](const std::function<Tensor(const Tensor&)>& f, double at) {
    Tensor x = Tensor::from({at}, {1});
    x.set_requires_grad();
    backward(f(x), ones({1}, DType::f64));
    return x.grad().item();
  };
  EXPECT_EQ(gradient([](const Tensor& x) { return relu(x); }, 0), 0);
  EXPECT_EQ(gradient([](const Tensor& x) { return leaky_relu(x, 0.5); }, 0), 0.5);
  EXPECT_EQ(gradient([](const Tensor& x) { return elu(x, 2); }, 0), 2);
  EXPECT_EQ(gradient([](const Tensor& x) { return abs(x); }, 0), 0);
  EXPECT_EQ(gradient([](const Tensor& x) { return sign(x); }, 2), 0);
  EXPECT_EQ(gradient([](const Tensor& x) { return clamp(x, -1, 1); }, 1), 1);
  EXPECT_EQ(gradient([](const Tensor& x) { return pow(x, 0); }, 0), 0);
}

TEST(Unary, Errors) {
  const Tensor x = zeros({2}), ids = zeros({2}, DType::i32);
  verify_errors({
      {[&] { exp(ids); }, "Unsupported: exp: dtype i32 is not supported, use f32 or f64"},
      {[&] { scale(ids, 2); }, "Unsupported: scale: dtype i32 is not supported, use f32 or f64"},
      {[&] { elu(x, -1); }, "InvalidArgument: elu: alpha is -1 but needs to be 0 or more"},
      {[&] { clamp(x, 2, 1); }, "InvalidArgument: clamp: low is 2 and high 1 but low needs to be at most high"},
  });
}

}  // namespace
}  // namespace tessera::test
