#include "tessera/core/dtype.h"

#include <gtest/gtest.h>

#include "tessera/core/device.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

TEST(DType, NamesSizesAndKinds) {
  std::string names;
  size_t bytes = 0;
  for (const DType dtype : kAll) {
    names += std::string(name(dtype)) + " ";
    bytes = bytes * 10 + size_of(dtype);
    EXPECT_EQ(to_text(dtype), name(dtype));
  }
  EXPECT_EQ(names, "f32 f64 bf16 f16 i32 i64 u8 ");
  EXPECT_EQ(bytes, 4822481u);
  for (const DType dtype : kAll)
    EXPECT_EQ(is_floating(dtype), name(dtype)[0] == 'f' || name(dtype)[0] == 'b') << name(dtype);
  EXPECT_STREQ(name(Device::cpu), "cpu");
  EXPECT_STREQ(name(Device::cuda), "cuda");
}

TEST(DType, WithAnyGivesTheTypeOfTheDtype) {
  for (const DType dtype : kAll) {
    const DType found = with_any(dtype, []<class T>() { return dtype_of<T>; });
    EXPECT_EQ(found, dtype);
    EXPECT_EQ(with_any(dtype, []<class T>() { return sizeof(T); }), size_of(dtype));
  }
  EXPECT_EQ(error_of([] { with_any(DType(99), []<class T>() {}); }), "InternalError: dtype 99 is unknown");
}

TEST(DType, WithFloatRefusesTheOthers) {
  EXPECT_EQ(with_float(DType::f32, "op", []<class T>() { return sizeof(T); }), 4u);
  EXPECT_EQ(with_float(DType::f64, "op", []<class T>() { return sizeof(T); }), 8u);
  for (const DType dtype : {DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8})
    EXPECT_EQ(error_of([&] { with_float(dtype, "op", []<class T>() {}); }),
              std::string("Unsupported: op: dtype ") + name(dtype) + " is not supported, use f32 or f64");
}

}  // namespace
}  // namespace tessera::test
