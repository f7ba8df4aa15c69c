#pragma once

#include <cstdint>

/// 16-bit floating-point storage types. No std header beyond <cstdint>, and every function always inlined: CPU kernel
/// files may include this one.
namespace tessera {

/// 16-bit storage: the upper half of a float32. Arithmetic is done in float32.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  /// Rounds to nearest even; NaN stays NaN.
  [[gnu::always_inline]] explicit bf16(float value) {
    const uint32_t b = __builtin_bit_cast(uint32_t, value);
    bits = (b & 0x7fffffffu) > 0x7f800000u ? uint16_t((b >> 16) | 0x40u)
                                          : uint16_t((b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
  }
  [[gnu::always_inline]] explicit operator float() const { return __builtin_bit_cast(float, uint32_t(bits) << 16); }
};

/// 16-bit storage: IEEE 754 binary16. Arithmetic is done in float32.
struct f16 {
  uint16_t bits = 0;
  f16() = default;
  /// Rounds to nearest even; overflow gives infinity, NaN stays NaN.
  [[gnu::always_inline]] explicit f16(float value) {
    const uint32_t b = __builtin_bit_cast(uint32_t, value), sign = (b >> 16) & 0x8000u, magnitude = b & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      bits = uint16_t(sign | 0x7e00u);
    } else if (magnitude >= 0x477ff000u) {
      bits = uint16_t(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {  // subnormal: let float addition round at the right bit
      const float shifted = __builtin_bit_cast(float, magnitude) + __builtin_bit_cast(float, 0x3f000000u);
      bits = uint16_t(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000u));
    } else {
      bits = uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
    }
  }
  [[gnu::always_inline]] explicit operator float() const {
    const uint32_t sign = uint32_t(bits & 0x8000u) << 16, rest = uint32_t(bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u) return __builtin_bit_cast(float, sign | 0x70000000u | rest);  // infinity, NaN
    const float scaled = __builtin_bit_cast(float, rest) * __builtin_bit_cast(float, 0x77800000u);  // * 2^112, exact
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, scaled));
  }
};

}  // namespace tessera
