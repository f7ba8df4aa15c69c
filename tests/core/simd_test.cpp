#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tessera/core/kernel.h"
#include "tessera/tests/core/simd_kernels.h"
#include "tessera/tests/support/proof.h"
#include "tessera/tests/support/tolerance.h"

namespace tessera::test {
namespace {

template <class T>
std::vector<T> math(const std::vector<T>& x, SimdFunction function) {
  std::vector<T> y(x.size());
  run<SimdMathKernel>(Device::cpu, {function, sizeof(T) == 8, int64_t(x.size()), x.data(), y.data()});
  return y;
}

/// Every 389th float of [low, high].
std::vector<float> sweep(float low, float high) {
  std::vector<float> out;
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 389)
    for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)})
      if (x >= low && x <= high) out.push_back(x);
  out.push_back(low);
  out.push_back(high);
  return out;
}

double worst(const std::vector<float>& x, const std::vector<float>& y, double (*exact)(double), float* at) {
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error(y[i], exact(double(x[i])));
    if (!(error <= most)) {
      most = error;
      *at = x[i];
    }
  }
  return most;
}

TEST(Simd, ExpIsWithinTwoUlp) {
  const Restore restore;
  const std::vector<float> x = sweep(-87.3365f, 88.7228f);
  for (const Isa isa : isas()) {
    set_isa(isa);
    float at = 0;
    EXPECT_LE(worst(
                  x, math(x, SimdFunction::exp), [](double v) { return std::exp(v); }, &at),
              2)
        << name(isa) << " at " << at;
  }
}

TEST(Simd, LogIsWithinTwoUlp) {
  const Restore restore;
  std::vector<float> x = sweep(std::numeric_limits<float>::min(), std::numeric_limits<float>::max());
  for (int i = -2000; i <= 2000; ++i) x.push_back(1 + float(i) * 0x1p-23f);  // where the result is smallest
  for (const Isa isa : isas()) {
    set_isa(isa);
    float at = 0;
    EXPECT_LE(worst(
                  x, math(x, SimdFunction::log), [](double v) { return std::log(v); }, &at),
              2)
        << name(isa) << " at " << at;
  }
}

TEST(Simd, OtherFunctionsAreWithinTheirUlps) {
  const Restore restore;
  struct {
    SimdFunction function;
    float low, high;
    double (*exact)(double);
    double ulps;
  } const all[] = {
      {SimdFunction::log, 0x1p-149f, 0x1p-126f, [](double v) { return std::log(v); }, 2},
      {SimdFunction::log1p, -0.999f, 1e30f, [](double v) { return std::log1p(v); }, 3},
      {SimdFunction::expm1, -87, 88, [](double v) { return std::expm1(v); }, 4},
      {SimdFunction::tanh, -90, 90, [](double v) { return std::tanh(v); }, 3},
      {SimdFunction::sigmoid, -87, 100, [](double v) { return 1 / (1 + std::exp(-v)); }, 3},
      {SimdFunction::erf, -10, 10, [](double v) { return std::erf(v); }, 3},
  };
  for (const auto& f : all) {
    const std::vector<float> x = sweep(f.low, f.high);
    for (const Isa isa : isas()) {
      set_isa(isa);
      float at = 0;
      EXPECT_LE(worst(x, math(x, f.function), f.exact, &at), f.ulps)
          << "function " << int(f.function) << " " << name(isa) << " at " << at;
    }
  }
}

TEST(Simd, SpecialValuesOfExp) {
  const Restore restore;
  const float inf = INFINITY, max = std::numeric_limits<float>::max();
  for (const Isa isa : isas()) {
    set_isa(isa);
    const std::vector<float> y =
        math<float>({0, -0.0f, inf, -inf, NAN, 89, 1000, max, -88, -1000, -max, 1e-45f, -NAN}, SimdFunction::exp);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], inf);
    EXPECT_EQ(y[3], 0);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], inf);
    EXPECT_EQ(y[6], inf);
    EXPECT_EQ(y[7], inf);
    EXPECT_EQ(y[8], 0);
    EXPECT_EQ(y[9], 0);
    EXPECT_EQ(y[10], 0);
    EXPECT_EQ(y[11], 1);
    EXPECT_TRUE(std::isnan(y[12]));
    EXPECT_EQ(math<float>({1}, SimdFunction::log)[0], 0);
  }
}

// Softmax compares its terms: what is larger must not come out smaller.
TEST(Simd, ExpIsMonotoneAcrossItsReductionSteps) {
  const Restore restore;
  std::vector<float> x;
  for (int k = -120; k <= 127; ++k) {
    float at = float((k + 0.5) * 0.6931471805599453);
    for (int i = 0; i < 50; ++i) at = std::nextafter(at, -INFINITY);
    for (int i = 0; i < 100; ++i, at = std::nextafter(at, INFINITY)) x.push_back(at);
  }
  for (const Isa isa : isas()) {
    set_isa(isa);
    const std::vector<float> y = math(x, SimdFunction::exp);
    for (size_t i = 1; i < y.size(); ++i) EXPECT_GE(y[i], y[i - 1] * (1 - 0x1p-22f)) << x[i];
  }
}

TEST(Simd, DoublesAreLibmAccurate) {
  const Restore restore;
  std::vector<double> x;
  for (int i = -7000; i <= 7000; ++i) x.push_back(i / 10.0 + 1e-3);
  for (const Isa isa : isas()) {
    set_isa(isa);
    const std::vector<double> e = math(x, SimdFunction::exp);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(compare(e[i], std::exp((long double)(x[i])), DType::f64, 1, e[i]), "") << x[i];
    const std::vector<double> l = math(e, SimdFunction::log);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(compare(l[i], std::log((long double)(e[i])), DType::f64, 1, std::fabs(l[i])), "") << e[i];
  }
}

TEST(Simd, VectorsAndTails) {
  const Restore restore;
  for (const Isa isa : isas()) {
    set_isa(isa);
    for (const int64_t count : {0, 1, 3, 4, 8, 15, 16, 17, 33, 64}) {
      std::vector<float> x(size_t(count) + 1), out(size_t(count) + 2, -7);
      for (int64_t i = 0; i < count; ++i) x[size_t(i) + 1] = float(i);
      int lanes = 0, registers = 0;
      // One element into the buffers: loads and stores need no alignment.
      run<SimdVectorKernel>(Device::cpu, {count, 3, x.data() + 1, out.data() + 1, &lanes, &registers});
      EXPECT_EQ(lanes * 4, vector_bytes(isa));
      EXPECT_EQ(registers, isa == Isa::avx512 ? 32 : 16);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(out[size_t(i) + 1], 3 * float(i) + 1);
      EXPECT_EQ(out[0], -7);
      EXPECT_EQ(out[size_t(count) + 1], -7);
    }
  }
}

}  // namespace
}  // namespace tessera::test
