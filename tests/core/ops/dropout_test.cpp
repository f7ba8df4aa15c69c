#include "tessera/core/ops/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/core/ops/create.h"
#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

/// The word that decides element i: counters 16 b .. 16 b + 15 serve elements 64 b .. 64 b + 63, word by word.
uint32_t word_of(const Philox& random, int64_t i) { return random(uint64_t(i / 64 * 16 + i % 16)).bits[i % 64 / 16]; }

TEST(Dropout, MaskGradientAndDeterminism) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{63}, Shape{64}, Shape{65}, Shape{7, 19}, Shape{50, 1000}})
    for (const double p : {0.1, 0.5, 0.9})
      verify({.name = "dropout " + to_text(shape) + " p = " + to_text(p),
              .inputs = {real(shape)},
              .call =
                  [p](const Tensors& in) {
                    Generator generator(11);
                    return dropout(in[0], p, generator);
                  },
              .reference =
                  [p](const Arrays& in) {
                    const Philox random(11, 0);
                    Array out(in[0].shape);
                    for (int64_t i = 0; i < out.numel(); ++i)
                      out[i] = double(word_of(random, i)) * 0x1p-32 < p ? Real(0) : in[0][i] / (1 - p);
                    return out;
                  },
              .k = 0.75,
              .grad_k = 0.75});
}

TEST(Dropout, ShareOfZeros) {
  constexpr double kCount = 200'000;
  for (const double p : {0.01, 0.5, 0.99}) {
    Generator generator(3);
    int64_t zeros = 0;
    for (const float y : dropout(ones({200'000}), p, generator).span<float>()) {
      zeros += y == 0;
      ASSERT_TRUE(y == 0 || y == float(1 / (1 - p))) << y;
    }
    EXPECT_NEAR(double(zeros) / kCount, p, 5 * std::sqrt(p * (1 - p) / kCount));
  }
}

TEST(Dropout, EachCallTakesTheNextStream) {
  Generator generator(3), again(3);
  const Tensor x = ones({1000});
  const Tensor a = dropout(x, 0.5, generator), b = dropout(x, 0.5, generator);
  EXPECT_FALSE(same_bits(a, b));
  EXPECT_TRUE(same_bits(a, dropout(x, 0.5, again)));
  // A draw belongs to the element's position: a shorter tensor sees the same mask.
  Generator third(3);
  EXPECT_TRUE(same_bits(a.view_rows(0, 100), dropout(x.view_rows(0, 100), 0.5, third)));
}

TEST(Dropout, NothingAndEverything) {
  Generator generator(3);
  Tensor x = ones({5});
  x.set_requires_grad();
  EXPECT_TRUE(dropout(x, 0, generator).is(x));
  EXPECT_EQ(generator.streams_used(), 1u);  // the stream is taken, so that p does not move what follows
  verify({.name = "p = 1",
          .inputs = {real({7, 3})},
          .call =
              [](const Tensors& in) {
                Generator g(1);
                return dropout(in[0], 1, g);
              },
          .reference = [](const Arrays& in) { return Array(in[0].shape); },
          .k = 0,
          .grad_k = 0});
}

TEST(Dropout, DroppedNanIsZero) {
  Generator generator(3);
  const Tensor y = dropout(full({1000}, NAN), 0.5, generator);
  const Philox random(3, 0);
  for (int64_t i = 0; i < 1000; ++i) {
    if (word_of(random, i) < 0x80000000u)
      ASSERT_EQ(y.data<float>()[i], 0);
    else
      ASSERT_TRUE(std::isnan(y.data<float>()[i]));
  }
}

TEST(Dropout, Errors) {
  Generator generator(1);
  const Tensor x = ones({2});
  verify_errors({
      {[&] { dropout(x, -0.1, generator); }, "InvalidArgument: dropout: p is -0.1 but needs to be in [0, 1]"},
      {[&] { dropout(x, 1.5, generator); }, "InvalidArgument: dropout: p is 1.5 but needs to be in [0, 1]"},
      {[&] { dropout(x, NAN, generator); }, "InvalidArgument: dropout: p is nan but needs to be in [0, 1]"},
      {[&] { dropout(ones({2}, DType::i32), 0.5, generator); },
       "Unsupported: dropout: dtype i32 is not supported, use f32 or f64"},
  });
  EXPECT_EQ(generator.streams_used(), 0u);
}

}  // namespace
}  // namespace tessera::test
