#pragma once

#include <cstdint>

#include "tessera/core/tensor.h"

/// Arrays of more than 2^31 elements without the memory: one small file in memory, mapped many times in a row.
namespace tessera::test {

/// `count` elements: those of `pattern` over and over, then those of `tail` at the end, which has memory of its own. Both of
/// one dtype, i32 or f32; pattern's and tail's bytes and those of count are whole pages. Read-only in spirit: a write to a
/// repeated element shows at all its places.
Tensor repeated(const Tensor& pattern, const Tensor& tail, int64_t count, const Shape& shape);

/// Zeros, which take no memory until they are written, with `tail` at the end.
Tensor zeros_before(const Tensor& tail, const Shape& shape);

/// Whether tests that walk every one of more than 2^31 elements run: TESSERA_LONG is set (`./dev soak`).
bool long_tests();
/// The same for those that take a second or two: not under a sanitizer.
bool past_int32_tests();

/// Just past what an int32 can count, by whole patterns of kPattern elements and a tail of kTail.
inline constexpr int64_t kPattern = int64_t{1} << 20;
inline constexpr int64_t kTail = int64_t{1} << 14;
inline constexpr int64_t kPastInt32 = (int64_t{1} << 31) + kPattern + kTail;

}  // namespace tessera::test
