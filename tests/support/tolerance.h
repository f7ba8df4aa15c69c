#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tessera/core/dtype.h"

/// How close is close enough: `tol = 4 * k * eps * magnitude`, where magnitude is the sum of the absolute terms and k
/// counts the roundings that a term may go through. eps is the unit roundoff (half the spacing at 1).
namespace tessera::test {

/// Unit roundoff of a dtype: 2^-24 for f32, 2^-53 for f64, 2^-8 for bf16, 2^-11 for f16.
double unit_roundoff(DType dtype);

/// 4 * k * eps * magnitude, and 4 * k of the smallest subnormal where results underflow.
double tolerance(DType dtype, double k, double magnitude);

/// "" when `got` is within tolerance of `expected`, else what is wrong. NaN equals NaN, infinities must be equal, and
/// k = 0 asks for the correctly rounded value.
std::string compare(double got, long double expected, DType dtype, double k, double magnitude);

/// Distance of `got` from `expected` in units of the spacing of floats at `expected`; 0 for two NaNs or equal infinities.
double ulp_error(float got, double expected);

}  // namespace tessera::test
