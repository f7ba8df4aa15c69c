// Philox for 16 counters at a time, a counter a 64-bit lane, so that the rounds run in vector registers. A block of 64
// elements takes counters 16 b .. 16 b + 15: word w of counter 16 b + l decides element 64 b + 16 w + l. The layout is the
// same for every instruction set, and so are the draws.

#include "tessera/core/ops/dropout_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int kWays = 16;
constexpr int64_t kBlock = 4 * kWays;

/// Four words of each of 16 counters. Only the lower half of a lane counts; what is above is left to be overwritten.
TESSERA_INLINE void draw_block(const Philox& random, uint64_t block, uint32_t words[kBlock]) {
  constexpr int kLane = simd::kLanes<uint64_t>, kVectors = kWays / kLane;
  using V = simd::Vec<uint64_t, kLane>;
  const V m0 = simd::splat<kLane>(uint64_t{0xD2511F53u}), m1 = simd::splat<kLane>(uint64_t{0xCD9E8D57u});
  V c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    c0[i] = simd::splat<kLane>(block * kWays + uint64_t(i * kLane)) + simd::iota<uint64_t, kLane>();
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
    simd::store<kLane>(words + kWays + i * kLane, __builtin_convertvector(c1[i], Half));
    simd::store<kLane>(words + 2 * kWays + i * kLane, __builtin_convertvector(c2[i], Half));
    simd::store<kLane>(words + 3 * kWays + i * kLane, __builtin_convertvector(c3[i], Half));
  }
}

/// A product and a select, without a branch: half of a mask's branches would be mispredicted.
template <class T>
TESSERA_INLINE void select(const T* __restrict x, const uint32_t* __restrict words, uint32_t threshold, T scale,
                           T* __restrict out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T scaled = x[i] * scale;
    out[i] = words[i] >= threshold ? scaled : T(0);
  }
}

template <class T>
void drop(const DropoutKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  T* out = static_cast<T*>(k.out);
  const T scale = T(k.scale);
  const uint32_t threshold = k.threshold;
  const Philox random = k.random;
  const int64_t count = k.count;
  parallel_for((count + kBlock - 1) / kBlock, 512, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      uint32_t words[kBlock];
      draw_block(random, uint64_t(b), words);
      const int64_t first = b * kBlock, here = count - first < kBlock ? count - first : kBlock;
      here == kBlock ? select(x + first, words, threshold, scale, out + first, kBlock)
                     : select(x + first, words, threshold, scale, out + first, here);
    }
  });
}

}  // namespace

template <Isa>
void DropoutKernel::cpu(const Args& args) {
  args.is_double ? drop<double>(args) : drop<float>(args);
}
template void DropoutKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
