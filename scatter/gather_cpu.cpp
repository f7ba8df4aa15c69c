// Row gather, on CPUs: all of it is memory traffic. Ids are checked block by block while they are in the first-level cache;
// rows some ids ahead are prefetched; a large result is written past the caches, in whole lines, which saves reading it
// first.

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/gather_kernels.h"

namespace tessera {
namespace {

constexpr int64_t kBlock = 512;                     // ids checked at a time
constexpr int64_t kAhead = 16;                      // rows between a prefetch and its use
constexpr int64_t kForkBytes = 1 << 18;             // of the result, below which a second thread costs more than it brings
constexpr int64_t kStreamBytes = int64_t{1} << 24;  // results of more bytes are written past the caches
constexpr int64_t kPrefetchBytes = 1 << 10;         // of a row, beyond which the hardware follows by itself

using Byte = unsigned char;
constexpr int kStep = simd::kVectorBytes;

template <bool kStream>
TESSERA_INLINE void copy_row(Byte* to, const Byte* from, int64_t bytes) {
  if (kStream) {
    for (int64_t i = 0; i < bytes; i += kStep) simd::stream(to + i, simd::load<kStep>(from + i));
    return;
  }
  if (bytes >= kStep) {
    for (int64_t i = 0; i + kStep <= bytes; i += kStep) simd::store<kStep>(to + i, simd::load<kStep>(from + i));
    if (bytes % kStep != 0) simd::store<kStep>(to + bytes - kStep, simd::load<kStep>(from + bytes - kStep));
  } else if (bytes >= 16) {
    for (int64_t i = 0; i + 16 <= bytes; i += 16) simd::store<16>(to + i, simd::load<16>(from + i));
    simd::store<16>(to + bytes - 16, simd::load<16>(from + bytes - 16));
  } else {
    int64_t i = 0;
    for (; i + 4 <= bytes; i += 4) simd::store<4>(to + i, simd::load<4>(from + i));
    for (; i < bytes; ++i) to[i] = from[i];
  }
}

template <class I>
TESSERA_INLINE bool inside(const I* ids, int64_t n, int64_t bound) {
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= ids[i] >= 0 && ids[i] < bound;
  return good;
}

/// Rows of a few bytes, as elements.
template <class I, class E>
TESSERA_INLINE void copy_elements(const void* x, const I* ids, int64_t n, void* out) {
  const E* from = static_cast<const E*>(x);
  E* to = static_cast<E*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = from[ids[i]];
}

template <class I, bool kStream>
TESSERA_INLINE void copy_rows(const Byte* x, const I* ids, int64_t n, int64_t ahead_n, int64_t bytes, Byte* out) {
  const int64_t lines = bytes < kPrefetchBytes ? bytes : kPrefetchBytes;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < ahead_n) {
      const Byte* next = x + ids[i + kAhead] * bytes;
      for (int64_t b = 0; b < lines; b += 64) __builtin_prefetch(next + b, 0, 2);
    }
    copy_row<kStream>(out + i * bytes, x + ids[i] * bytes, bytes);
  }
}

template <class I>
void gather(const GatherKernel::Args& k, const I* index) {
  const Byte* x = static_cast<const Byte*>(k.x);
  Byte* out = static_cast<Byte*>(k.out);
  const int64_t bytes = k.row_bytes, bound = k.x_rows;
  const bool stream = bytes % 64 == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0 && k.count * bytes > kStreamBytes;
  bool* outside = k.outside;
  const int64_t grain = kForkBytes / (kBlock * (bytes + 8)) + 1, blocks = (k.count + kBlock - 1) / kBlock, count = k.count;
  parallel_for(blocks, grain, [=](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t begin = b * kBlock, n = count - begin < kBlock ? count - begin : kBlock;
      const I* ids = index + begin;
      if (!inside(ids, n, bound)) {
        __atomic_store_n(outside, true, __ATOMIC_RELAXED);
        return;
      }
      Byte* to = out + begin * bytes;
      if (stream)
        copy_rows<I, true>(x, ids, n, n, bytes, to);
      else if (bytes == 4)
        copy_elements<I, uint32_t>(x, ids, n, to);
      else if (bytes == 8)
        copy_elements<I, uint64_t>(x, ids, n, to);
      else if (bytes == 2)
        copy_elements<I, uint16_t>(x, ids, n, to);
      else
        copy_rows<I, false>(x, ids, n, n, bytes, to);
    }
    if (stream) simd::stream_fence();
  });
}

}  // namespace

template <Isa>
void GatherKernel::cpu(const Args& args) {
  args.index32 != nullptr ? gather(args, args.index32) : gather(args, args.index64);
}
template void GatherKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
