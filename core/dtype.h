#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/core/error.h"
#include "tessera/core/half.h"

namespace tessera {

/// Element types. u8 also holds booleans (0 or 1).
enum class DType : uint8_t { f32, f64, bf16, f16, i32, i64, u8 };

template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "not an element type");
  return DType::f32;
}();
template <> inline constexpr DType dtype_of<float> = DType::f32;
template <> inline constexpr DType dtype_of<double> = DType::f64;
template <> inline constexpr DType dtype_of<bf16> = DType::bf16;
template <> inline constexpr DType dtype_of<f16> = DType::f16;
template <> inline constexpr DType dtype_of<int32_t> = DType::i32;
template <> inline constexpr DType dtype_of<int64_t> = DType::i64;
template <> inline constexpr DType dtype_of<uint8_t> = DType::u8;

/// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32: case DType::i32: return 4;
    case DType::f64: case DType::i64: return 8;
    case DType::bf16: case DType::f16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

/// "f32", "f64", "bf16", "f16", "i32", "i64" or "u8".
const char* name(DType dtype);
std::string to_text(DType dtype);

constexpr bool is_floating(DType dtype) { return dtype <= DType::f16; }

/// Calls `f.template operator()<T>()` for f32 or f64; any other dtype is an Unsupported error naming `op`.
template <class F>
decltype(auto) with_float(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    default: fail<Unsupported>("{}: dtype {} is not supported, use f32 or f64", op, dtype);
  }
}

/// Calls `f.template operator()<T>()` for any dtype.
template <class F>
decltype(auto) with_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::bf16: return f.template operator()<bf16>();
    case DType::f16: return f.template operator()<f16>();
    case DType::i32: return f.template operator()<int32_t>();
    case DType::i64: return f.template operator()<int64_t>();
    case DType::u8: return f.template operator()<uint8_t>();
  }
  fail<InternalError>("dtype {} is unknown", int(dtype));
}

}  // namespace tessera
