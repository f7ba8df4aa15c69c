#include "tessera/core/ops/create.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/parallel.h"
#include "tessera/tests/support/cases.h"
#include "tessera/tests/support/proof.h"
#include "tessera/tests/support/tolerance.h"

namespace tessera::test {
namespace {

constexpr DType kAll[] = {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8};

TEST(Create, FullOfEveryDtype) {
  for (const DType dtype : kAll)
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 4}, Shape{70'000}}) {
      const Tensor x = full(shape, 3, dtype);
      EXPECT_EQ(x.dtype(), dtype);
      EXPECT_EQ(x.shape(), shape);
      const Tensor wide = cast(x, DType::f64);
      for (const double value : wide.span<double>()) ASSERT_EQ(value, 3);
    }
  EXPECT_EQ(full({}, 0.1, DType::f64).item(), 0.1);
  EXPECT_EQ(full({}, 0.1).item(), double(0.1f));
  EXPECT_EQ(full({}, -7, DType::i64).item(), -7);
  EXPECT_EQ(zeros({2}).to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(ones({2}, DType::u8).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 1}));
  EXPECT_EQ(error_of([] { zeros({2}, DType::f32, Device::cuda); }),
            "Unsupported: storage: device cuda needs the CUDA plugin, which is not loaded");
}

TEST(Create, CloneHasMemoryOfItsOwn) {
  Tensor x = Tensor::from<float>({1, 2, 3}, {3});
  x.set_requires_grad();
  Tensor y = clone(x);
  EXPECT_FALSE(y.requires_grad());
  y.mutable_data<float>()[0] = 9;
  EXPECT_EQ(x.data<float>()[0], 1);
  EXPECT_TRUE(same_bits(clone(x.view_rows(1, 3)), x.view_rows(1, 3)));
  EXPECT_EQ(clone(Tensor::empty({0, 3})).shape(), (Shape{0, 3}));
}

TEST(Create, UniformMoments) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Generator generator(1);
    const Tensor x = cast(uniform({200'000}, -3, 5, generator, dtype), DType::f64);
    double sum = 0, squares = 0;
    for (const double value : x.span<double>()) {
      ASSERT_TRUE(value >= -3 && value < 5);
      sum += value;
      squares += value * value;
    }
    const double mean = sum / 200'000, variance = squares / 200'000 - mean * mean;
    EXPECT_NEAR(mean, 1, 5 * 8 / std::sqrt(12 * 200'000.0));
    EXPECT_NEAR(variance, 64.0 / 12, 5 * 64 / std::sqrt(180 * 200'000.0));
  }
}

// Near 1000 a float's spacing is a sixteen-thousandth: every so often the last draws round up to the excluded end.
TEST(Create, UniformNeverReachesItsUpperEnd) {
  Generator generator(2);
  for (const auto& [low, high] : {std::pair{1000.0, 1001.0}, {-1001.0, -1000.0}, {0.0, 0.1}, {-1.0, 1.0}}) {
    const Tensor x = uniform({1 << 19}, low, high, generator);
    for (const float value : x.span<float>()) ASSERT_TRUE(double(value) >= low - 1e-4 && double(value) < high);
  }
  EXPECT_EQ(uniform({}, 2, 2, generator).item(), 2);
}

TEST(Create, NormalMoments) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Generator generator(1);
    constexpr double kCount = 200'000;
    const Tensor x = cast(normal({200'000}, generator, dtype), DType::f64);
    double moments[5] = {};
    int64_t beyond2 = 0;
    for (const double value : x.span<double>()) {
      ASSERT_TRUE(std::isfinite(value));
      for (int m = 1; m <= 4; ++m) moments[m] += std::pow(value, m) / kCount;
      beyond2 += std::fabs(value) > 2;
    }
    // Five standard errors each: the variance of x^m is E x^2m - (E x^m)^2 = 1, 2, 15, 96.
    EXPECT_NEAR(moments[1], 0, 5 / std::sqrt(kCount));
    EXPECT_NEAR(moments[2], 1, 5 * std::sqrt(2 / kCount));
    EXPECT_NEAR(moments[3], 0, 5 * std::sqrt(15 / kCount));
    EXPECT_NEAR(moments[4], 3, 5 * std::sqrt(96 / kCount));
    EXPECT_NEAR(double(beyond2), kCount * 0.0455003, 5 * std::sqrt(kCount * 0.0455));
  }
}

TEST(Create, RandomDrawsDependOnSeedAndStreamOnly) {
  const Restore restore;
  Tensor first[4];
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    Generator generator(42);
    const Tensor made[4] = {uniform({9000}, 0, 1, generator), uniform({9000}, 0, 1, generator), normal({9000}, generator),
                            normal({9000}, generator, DType::f64)};
    EXPECT_EQ(generator.streams_used(), 4u);
    for (int i = 0; i < 4; ++i) {
      if (n == 1) first[i] = made[i];
      EXPECT_TRUE(same_bits(first[i], made[i])) << i;
    }
  }
  EXPECT_FALSE(same_bits(first[0], first[1]));
  Generator other(43), short_one(42);
  EXPECT_FALSE(same_bits(first[0], uniform({9000}, 0, 1, other)));
  // A shorter draw is the beginning of a longer one.
  EXPECT_TRUE(same_bits(first[0].view_rows(0, 100), uniform({100}, 0, 1, short_one)));
}

// Which draw makes which element is part of the contract: a seed must give the same model in every version.
TEST(Create, RandomDrawsByTheirDefinition) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Generator generator(42);
    const Tensor u = uniform({100}, -2, 3, generator, dtype), n = normal({100}, generator, dtype);
    const Philox first(42, 0), second(42, 1);
    for (int64_t i = 0; i < 100; ++i) {
      const Philox::Draw pair = first(uint64_t(i / 2));
      const uint64_t bits = uint64_t{pair.bits[i % 2 * 2]} << 32 | pair.bits[i % 2 * 2 + 1];
      const double flat =
          -2 + 5 * (dtype == DType::f32 ? double(Philox::unit(first.word(uint64_t(i)))) : double(bits >> 11) * 0x1p-53);
      EXPECT_EQ(compare(cast(u, DType::f64).data<double>()[i], flat, dtype, 1, std::fabs(flat)), "");
      const Philox::Draw draw = second(uint64_t(i));
      const long double radius = std::sqrt(-2 * std::log((draw.bits[0] + 1.0L) * 0x1p-32L)),
                        angle = 2 * std::acos(-1.0L) * (draw.bits[1] * 0x1p-32L);
      EXPECT_EQ(compare(cast(n, DType::f64).data<double>()[i], radius * std::cos(angle), dtype, 4, double(radius)), "");
    }
  }
}

TEST(Create, RandomDtypes) {
  Generator generator(1);
  EXPECT_EQ(error_of([&] { uniform({2}, 0, 1, generator, DType::f16); }),
            "Unsupported: uniform: dtype f16 is not supported, use f32 or f64");
  EXPECT_EQ(error_of([&] { normal({2}, generator, DType::i32); }),
            "Unsupported: normal: dtype i32 is not supported, use f32 or f64");
}

TEST(Create, CastBetweenFloats) {
  for (const DType to : {DType::f32, DType::f64, DType::bf16, DType::f16})
    for (const Shape& shape : {Shape{}, Shape{0, 2}, Shape{5, 7}, Shape{70'000}})
      verify({.name = "cast to " + to_text(to) + " " + to_text(shape),
              .inputs = {real(shape)},
              .call = [to](const Tensors& in) { return cast(in[0], to); },
              .reference = [](const Arrays& in) { return in[0]; },
              .k = 0.5,
              .grad_k = 0.5,
              .smooth = to == DType::f64});
}

TEST(Create, CastFromHalves) {
  for (const DType from : {DType::bf16, DType::f16})
    verify({.name = "cast from " + to_text(from),
            .inputs = {real({5, 7})},
            .call = [](const Tensors& in) { return cast(in[0], DType::f32); },
            .reference = [](const Arrays& in) { return in[0]; },
            .k = 0,
            .grad_k = 0.5,
            .dtypes = {from}});
}

TEST(Create, CastToIntegersTruncates) {
  const Tensor x = Tensor::from<float>({1.9f, -1.9f, 0.5f, -0.0f, 3e9f, 2}, {6});
  EXPECT_EQ(cast(x, DType::i64).to_vector<int64_t>(), (std::vector<int64_t>{1, -1, 0, 0, 3'000'000'000, 2}));
  EXPECT_EQ(cast(x.view_rows(0, 3), DType::i32).to_vector<int32_t>(), (std::vector<int32_t>{1, -1, 0}));
  const Tensor i = Tensor::from<int64_t>({0, 255, 16'777'217, -1}, {4});
  EXPECT_EQ(cast(i, DType::f32).to_vector<float>(), (std::vector<float>{0, 255, 16'777'216, -1}));
  EXPECT_EQ(cast(i, DType::f64).to_vector<double>(), (std::vector<double>{0, 255, 16'777'217, -1}));
  EXPECT_EQ(cast(i.view_rows(0, 2), DType::u8).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(cast(cast(i.view_rows(1, 2), DType::f16), DType::i32).item(), 255);
  EXPECT_EQ(cast(cast(i.view_rows(1, 2), DType::bf16), DType::f16).item(), 255);
}

// What the target cannot hold becomes the nearest that it can, NaN becomes 0: nothing is left to the processor.
TEST(Create, CastBeyondTheRange) {
  constexpr float inf = INFINITY;
  const Tensor x = Tensor::from<float>({3e9f, -3e9f, 0x1p31f, -0x1p31f, 2147483520.0f, inf, -inf, NAN}, {8});
  constexpr int32_t top = INT32_MAX, bottom = INT32_MIN;
  EXPECT_EQ(cast(x, DType::i32).to_vector<int32_t>(),
            (std::vector<int32_t>{top, bottom, top, bottom, 2147483520, top, bottom, 0}));
  const Tensor y = Tensor::from<double>({0x1p63, -0x1p63, 1e300, 256, 255.9, -0.9, -1, NAN}, {8});
  EXPECT_EQ(cast(y, DType::i64).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, INT64_MAX, 256, 255, 0, -1, 0}));
  EXPECT_EQ(cast(y, DType::u8).to_vector<uint8_t>(), (std::vector<uint8_t>{255, 0, 255, 255, 255, 0, 0, 0}));
  EXPECT_EQ(cast(cast(x, DType::bf16), DType::i32).data<int32_t>()[7], 0);
  EXPECT_EQ(cast(Tensor::from<int64_t>({256, -1, int64_t{1} << 33}, {3}), DType::u8).to_vector<uint8_t>(),
            (std::vector<uint8_t>{0, 255, 0}));
  EXPECT_EQ(cast(y, DType::f32).data<float>()[2], inf);
  EXPECT_EQ(cast(cast(full({}, 1e6), DType::f16), DType::f32).item(), inf);
}

TEST(Create, UniformInDoubleHasAllItsBits) {
  Generator generator(3);
  const Tensor x = uniform({1000}, 0, 1, generator, DType::f64);
  int64_t odd = 0;
  for (const double v : x.span<double>()) odd += int64_t(v * 0x1p53) & 1;
  EXPECT_NEAR(double(odd), 500, 5 * std::sqrt(250.0));
}

TEST(Create, CastToItsOwnDtypeIsTheSameTensor) {
  Tensor x = ones({2});
  x.set_requires_grad();
  EXPECT_TRUE(cast(x, DType::f32).is(x));
  EXPECT_FALSE(cast(x, DType::i32).requires_grad());  // integers have no gradient
  EXPECT_TRUE(cast(x, DType::f16).requires_grad());
}

}  // namespace
}  // namespace tessera::test
