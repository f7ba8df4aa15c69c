#include "tessera/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace tessera::test {
namespace {

// The known answers of Random123 (kat_vectors, philox4x32 10): counter, key, result.
TEST(Philox, KnownAnswers) {
  const auto words = [](uint64_t seed, uint64_t stream, uint64_t index) {
    const Philox::Draw d = Philox(seed, stream)(index);
    return std::vector<uint32_t>{d.bits[0], d.bits[1], d.bits[2], d.bits[3]};
  };
  EXPECT_EQ(words(0, 0, 0), (std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(~0ull, ~0ull, ~0ull), (std::vector<uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (std::vector<uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, WordsAreTheDrawsInOrder) {
  const Philox random(7, 9);
  for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(random.word(i), random(i / 4).bits[i % 4]);
  EXPECT_EQ(random.word((1ull << 40) + 2), random(1ull << 38).bits[2]);
}

TEST(Philox, UnitIsInHalfOpenInterval) {
  EXPECT_EQ(Philox::unit(0), 0);
  EXPECT_EQ(Philox::unit(255), 0);
  EXPECT_EQ(Philox::unit(256), 0x1p-24f);
  EXPECT_EQ(Philox::unit(0xffffffff), 1 - 0x1p-24f);
}

TEST(Philox, BelowCoversItsRange) {
  EXPECT_EQ(Philox::below(0, 10), 0u);
  EXPECT_EQ(Philox::below(~0ull, 10), 9u);
  EXPECT_EQ(Philox::below(~0ull, 1), 0u);
  EXPECT_EQ(Philox::below(~0ull, ~0ull), ~0ull - 1);
  EXPECT_EQ(Philox::below(1ull << 63, 10), 5u);
}

/// Pearson's statistic against equal shares; with `cells - 1` degrees of freedom it is below mean + 5 sigma.
void expect_uniform(const std::vector<int64_t>& cells, int64_t total) {
  const double share = double(total) / double(cells.size());
  double statistic = 0;
  for (const int64_t count : cells) statistic += (double(count) - share) * (double(count) - share) / share;
  const double freedom = double(cells.size()) - 1;
  EXPECT_LT(statistic, freedom + 5 * std::sqrt(2 * freedom));
  EXPECT_GT(statistic, freedom - 5 * std::sqrt(2 * freedom));
}

TEST(Philox, Uniform) {
  constexpr int64_t kDraws = 1 << 18;
  for (const uint64_t stream : {0ull, 1ull, 1ull << 40}) {
    const Philox random(12, stream);
    std::vector<int64_t> bytes(256), low(256), thirds(1000);
    for (int64_t i = 0; i < kDraws; ++i) {
      const uint32_t w = random.word(uint64_t(i));
      ++bytes[w >> 24];
      ++low[w & 255];
      ++thirds[size_t(Philox::below(uint64_t(w) << 32 | w, 1000))];
    }
    expect_uniform(bytes, kDraws);
    expect_uniform(low, kDraws);
    expect_uniform(thirds, kDraws);
  }
}

// Pairs of neighbouring draws, of the same index in neighbouring streams, and of neighbouring seeds.
TEST(Philox, NeighboursAreIndependent) {
  constexpr int64_t kDraws = 1 << 17;
  std::vector<int64_t> draws(256), streams(256), seeds(256);
  const Philox random(1, 0), next_stream(1, 1), next_seed(2, 0);
  for (int64_t i = 0; i < kDraws; ++i) {
    const uint64_t at = uint64_t(i);
    const uint32_t high = random.word(2 * at) >> 28 << 4;
    ++draws[high | random.word(2 * at + 1) >> 28];
    ++streams[high | next_stream.word(2 * at) >> 28];
    ++seeds[high | next_seed.word(2 * at) >> 28];
  }
  expect_uniform(draws, kDraws);
  expect_uniform(streams, kDraws);
  expect_uniform(seeds, kDraws);
}

TEST(Generator, EachOpTakesTheNextStream) {
  Generator generator(5);
  EXPECT_EQ(generator.seed(), 5u);
  const Philox a = generator.next(), b = generator.next();
  EXPECT_EQ(a.word(3), Philox(5, 0).word(3));
  EXPECT_EQ(b.word(3), Philox(5, 1).word(3));
  EXPECT_EQ(generator.streams_used(), 2u);
  Generator restored(0);
  restored.restore(generator.seed(), generator.streams_used());
  EXPECT_EQ(restored.next().word(0), generator.next().word(0));
}

}  // namespace
}  // namespace tessera::test
