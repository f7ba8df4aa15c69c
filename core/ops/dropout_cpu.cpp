// Philox for 16 counters at a time, a counter a 64-bit lane, so that the rounds run in vector registers. A block of 64
// elements takes counters 16 b .. 16 b + 15: word w of counter 16 b + l decides element 64 b + 16 w + l. The layout is the
// same for every instruction set, and so are the draws.

#include "tessera/core/ops/dropout_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/philox_lanes_kernels.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int64_t kBlock = 4 * kPhiloxLanes;

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
      uint64_t counter[kPhiloxLanes];
      for (int i = 0; i < kPhiloxLanes; ++i) counter[i] = uint64_t(b) * kPhiloxLanes + uint64_t(i);
      philox_lanes(random, counter, words);
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
