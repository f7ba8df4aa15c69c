#include "tessera/tests/support/tolerance.h"

#include <cmath>
#include <cstdio>

namespace tessera::test {
namespace {

double rounded(long double x, DType dtype) {
  switch (dtype) {
    case DType::f32: return double(float(x));
    case DType::f16: return double(float(f16(float(x))));
    case DType::bf16: return double(float(bf16(float(x))));
    default: return double(x);
  }
}

double smallest(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-149;
    case DType::f16: return 0x1p-24;
    case DType::bf16: return 0x1p-133;
    default: return 0x1p-1074;
  }
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f32: return 0x1p-24;
    case DType::f64: return 0x1p-53;
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-11;
    default: return 0;
  }
}

double tolerance(DType dtype, double k, double magnitude) {
  return 4 * k * (unit_roundoff(dtype) * magnitude + smallest(dtype));
}

std::string compare(double got, long double expected, DType dtype, double k, double magnitude) {
  const double exact = rounded(expected, dtype);
  double bound = 0;
  if (std::isnan(got) && std::isnan(exact)) return "";
  if (got == exact) return "";
  if (is_floating(dtype) && k > 0 && std::isfinite(got) && std::isfinite(double(expected)) && std::isfinite(magnitude)) {
    bound = tolerance(dtype, k, magnitude);
    if (std::fabs((long double)(got)-expected) <= (long double)(bound)) return "";
  }
  char text[200];
  std::snprintf(text, sizeof text, "is %.17g but needs %.17Lg within %.3g (off by %.3g)", got, expected, bound,
                std::fabs(got - double(expected)));
  return text;
}

double ulp_error(float got, double expected) {
  if (std::isnan(got) && std::isnan(expected)) return 0;
  if (double(got) == expected) return 0;
  if (!std::isfinite(got) || !std::isfinite(expected)) return double(float(expected)) == double(got) ? 0 : INFINITY;
  int exponent = -200;  // of zero, whose spacing is that of the subnormals
  if (expected != 0) std::frexp(expected, &exponent);
  const double spacing = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(double(got) - expected) / spacing;
}

}  // namespace tessera::test
