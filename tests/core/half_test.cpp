#include "tessera/core/half.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/core/random.h"

namespace tessera::test {
namespace {

/// A format by its definition, on doubles: sign, exponent, mantissa.
struct Format {
  int mantissa_bits, exponent_bits;

  bool is_nan(uint32_t bits) const { return (bits & magnitude_mask()) > infinity(); }
  uint32_t magnitude_mask() const { return (1u << (mantissa_bits + exponent_bits)) - 1; }
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }

  double decode(uint32_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const int exponent = int((bits & magnitude_mask()) >> mantissa_bits);
    double value = 0;
    if ((bits & magnitude_mask()) == infinity())
      value = INFINITY;
    else if (is_nan(bits))
      value = NAN;
    else if (exponent == 0)
      value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
    else
      value = std::ldexp(mantissa + (1u << mantissa_bits), exponent - bias - mantissa_bits);
    return (bits >> (mantissa_bits + exponent_bits)) != 0 ? -value : value;
  }

  /// Nearest, ties to even, by search among all values; what lies beyond half a step above the largest is infinite.
  uint32_t encode(double x) const {
    const uint32_t sign = std::signbit(x) ? 1u << (mantissa_bits + exponent_bits) : 0;
    const double y = std::fabs(x), largest = decode(infinity() - 1), step = largest - decode(infinity() - 2);
    if (y >= largest + step / 2) return sign | infinity();
    uint32_t low = 0, high = infinity() - 1;  // decode(low) <= y
    while (low < high) {
      const uint32_t middle = (low + high + 1) / 2;
      (decode(middle) <= y ? low : high) = decode(middle) <= y ? middle : middle - 1;
    }
    if (low == infinity() - 1) return sign | low;
    const double below = y - decode(low), above = decode(low + 1) - y;
    return sign | (below < above || (below == above && low % 2 == 0) ? low : low + 1);
  }
};

template <class T>
constexpr Format kFormat = {};
template <>
constexpr Format kFormat<f16> = {10, 5};
template <>
constexpr Format kFormat<bf16> = {7, 8};

template <class T>
T from_bits(uint32_t bits) {
  T out;
  out.bits = uint16_t(bits);
  return out;
}

template <class T>
class Half : public ::testing::Test {};
using Types = ::testing::Types<f16, bf16>;
TYPED_TEST_SUITE(Half, Types);

TYPED_TEST(Half, EveryValueToFloatAndBack) {
  const Format format = kFormat<TypeParam>;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = float(from_bits<TypeParam>(bits));
    if (format.is_nan(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(std::signbit(value), (bits >> 15) != 0) << bits;
      ASSERT_TRUE(format.is_nan(TypeParam(value).bits)) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(float(format.decode(bits)))) << bits;
    ASSERT_EQ(TypeParam(value).bits, bits);
  }
}

TYPED_TEST(Half, RoundsToNearestEvenAroundEveryTie) {
  const Format format = kFormat<TypeParam>;
  for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const double next =
        bits + 1 == format.infinity() ? 2 * format.decode(bits) - format.decode(bits - 1) : format.decode(bits + 1);
    const double middle = (format.decode(bits) + next) / 2;
    if (middle > 3.5e38) continue;  // half a step above the largest bf16 is beyond float
    const float tie = float(middle);
    if (double(tie) != middle) continue;  // below the smallest bf16 there is no float between
    for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)})
      for (const float y : {x, -x}) ASSERT_EQ(TypeParam(y).bits, format.encode(double(y))) << y;
  }
}

TYPED_TEST(Half, RoundsRandomFloats) {
  const Format format = kFormat<TypeParam>;
  const Philox random(5, 0);
  for (uint32_t i = 0; i < 200000; ++i) {
    float x = std::bit_cast<float>(random.word(i));
    if (i % 2 == 0) x = std::ldexp(std::bit_cast<float>((random.word(i) & 0x807fffffu) | 0x3f800000u), int(i / 2 % 44) - 26);
    if (std::isnan(x)) {
      ASSERT_TRUE(format.is_nan(TypeParam(x).bits));
    } else if (std::isinf(x)) {
      ASSERT_EQ(TypeParam(x).bits & 0x7fff, format.infinity());
    } else {
      ASSERT_EQ(TypeParam(x).bits, format.encode(double(x))) << x;
    }
  }
}

TYPED_TEST(Half, NanNeverBecomesInfinity) {
  const Format format = kFormat<TypeParam>;
  // Payloads that live only in the bits that are cut off.
  for (const uint32_t bits : {0x7f800001u, 0x7f80ffffu, 0x7fffffffu, 0x7fc00000u, 0xff800001u, 0xffffffffu}) {
    const TypeParam x(std::bit_cast<float>(bits));
    EXPECT_TRUE(format.is_nan(x.bits)) << bits;
    EXPECT_EQ(x.bits >> 15, bits >> 31);
  }
}

TEST(HalfLimits, F16) {
  EXPECT_EQ(float(f16(65504.0f)), 65504.0f);
  EXPECT_EQ(float(f16(65519.996f)), 65504.0f);
  EXPECT_EQ(float(f16(65520.0f)), INFINITY);
  EXPECT_EQ(float(f16(0x1p-24f)), 0x1p-24f);
  EXPECT_EQ(f16(0x1p-25f).bits, 0);  // a tie with zero, which is even
  EXPECT_EQ(f16(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(f16(-0.0f).bits, 0x8000);
}

TEST(HalfLimits, Bf16) {
  EXPECT_EQ(float(bf16(1.00390625f)), 1.0f);       // 1 + 2^-8: a tie, even below
  EXPECT_EQ(float(bf16(1.01171875f)), 1.015625f);  // 1 + 3 * 2^-8: a tie, even above
  EXPECT_EQ(float(bf16(3.4e38f)), INFINITY);
  EXPECT_EQ(bf16(-0.0f).bits, 0x8000);
}

}  // namespace
}  // namespace tessera::test
