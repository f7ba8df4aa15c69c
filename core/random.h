#pragma once

#include <cstdint>

/// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A draw depends only on (seed, stream, index), so
/// any thread, order or partition of the work gives the same numbers. No std header: CPU kernel files may include it.
namespace tessera {

struct Philox {
  uint32_t key0, key1, stream0, stream1;

  struct Draw {
    uint32_t bits[4];
  };

  [[gnu::always_inline]] Philox(uint64_t seed, uint64_t stream)
      : key0(uint32_t(seed)), key1(uint32_t(seed >> 32)), stream0(uint32_t(stream)), stream1(uint32_t(stream >> 32)) {}

  /// Four independent 32-bit words for counter `index`.
  [[gnu::always_inline]] Draw operator()(uint64_t index) const {
    uint32_t c0 = uint32_t(index), c1 = uint32_t(index >> 32), c2 = stream0, c3 = stream1, k0 = key0, k1 = key1;
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
      const uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
      c1 = uint32_t(p1);
      c3 = uint32_t(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  /// Word `i` of the stream, four to a counter.
  [[gnu::always_inline]] uint32_t word(uint64_t i) const { return (*this)(i / 4).bits[i % 4]; }

  /// Uniform in [0, 1) with 24 bits.
  [[gnu::always_inline]] static float unit(uint32_t bits) { return float(bits >> 8) * 0x1p-24f; }
  /// Uniform in [0, n) without bias worth measuring (64-bit multiply-shift), n >= 1.
  [[gnu::always_inline]] static uint64_t below(uint64_t bits, uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    return uint64_t((Wide{bits} * n) >> 64);
  }
};

/// The state of randomness of a run: a seed and a count of streams given out. Each op that draws takes the next stream.
class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed) {}
  uint64_t seed() const { return seed_; }
  uint64_t streams_used() const { return next_; }
  /// Continues where a saved generator stood.
  void restore(uint64_t seed, uint64_t streams_used) {
    seed_ = seed;
    next_ = streams_used;
  }
  Philox next() { return Philox(seed_, next_++); }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

}  // namespace tessera
