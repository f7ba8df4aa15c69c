#pragma once

#include "tessera/core/random.h"
#include "tessera/core/simd.h"

/// Philox for several counters at a time, a counter a 64-bit lane, so that its rounds run in vector registers. For kernel
/// files. The numbers are Philox's own, the same for every instruction set.
namespace tessera {

inline constexpr int kPhiloxLanes = 16;

/// words[kPhiloxLanes * w + i] is word w of counter[i].
TESSERA_INLINE void philox_lanes(const Philox& random, const uint64_t* counter, uint32_t* words) {
  constexpr int kLane = simd::kLanes<uint64_t>, kVectors = kPhiloxLanes / kLane;
  using V = simd::Vec<uint64_t, kLane>;
  const V m0 = simd::splat<kLane>(uint64_t{0xD2511F53u}), m1 = simd::splat<kLane>(uint64_t{0xCD9E8D57u});
  V c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];  // only the lower half of a lane counts
  for (int i = 0; i < kVectors; ++i) {
    c0[i] = simd::load<kLane>(counter + i * kLane);
    c1[i] = c0[i] >> 32;
    c2[i] = simd::splat<kLane>(uint64_t{random.stream0});
    c3[i] = simd::splat<kLane>(uint64_t{random.stream1});
  }
  uint32_t k0 = random.key0, k1 = random.key1;
  for (int round = 0; round < 10; ++round) {
    const V key0 = simd::splat<kLane>(uint64_t{k0}), key1 = simd::splat<kLane>(uint64_t{k1});
    for (int i = 0; i < kVectors; ++i) {
      const V p0 = simd::multiply_low32(c0[i], m0), p1 = simd::multiply_low32(c2[i], m1);
      c0[i] = (p1 >> 32) ^ c1[i] ^ key0;
      c1[i] = p1;
      c2[i] = (p0 >> 32) ^ c3[i] ^ key1;
      c3[i] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  using Half = simd::Vec<uint32_t, kLane>;
  for (int i = 0; i < kVectors; ++i) {
    simd::store<kLane>(words + i * kLane, __builtin_convertvector(c0[i], Half));
    simd::store<kLane>(words + kPhiloxLanes + i * kLane, __builtin_convertvector(c1[i], Half));
    simd::store<kLane>(words + 2 * kPhiloxLanes + i * kLane, __builtin_convertvector(c2[i], Half));
    simd::store<kLane>(words + 3 * kPhiloxLanes + i * kLane, __builtin_convertvector(c3[i], Half));
  }
}

}  // namespace tessera
