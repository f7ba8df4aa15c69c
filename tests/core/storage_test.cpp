#include "tessera/core/storage.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "tessera/tests/support/cases.h"

namespace tessera::test {
namespace {

constexpr size_t kMega = size_t{1} << 20;

bool aligned(const void* data, size_t to) { return reinterpret_cast<uintptr_t>(data) % to == 0; }

TEST(Storage, BlocksAreAlignedAndLargeEnough) {
  std::vector<size_t> sizes;
  for (size_t bytes = 0; bytes < 700; ++bytes) sizes.push_back(bytes);
  for (size_t bytes = 512; bytes <= 32 * kMega; bytes = bytes * 5 / 4)
    for (const size_t near : {bytes - 1, bytes, bytes + 1}) sizes.push_back(near);
  for (const size_t bytes : sizes) {
    const int64_t before = memory_stats().used_bytes;
    const Storage storage(bytes, Device::cpu);
    const size_t taken = size_t(memory_stats().used_bytes - before);
    ASSERT_TRUE(aligned(storage.data(), 64)) << bytes;
    if (bytes >= 2 * kMega) {
      ASSERT_TRUE(aligned(storage.data(), 2 * kMega)) << bytes;
    }
    ASSERT_EQ(storage.bytes(), bytes);
    ASSERT_GE(taken, bytes);
    ASSERT_LE(taken, bytes + bytes / 4 + (bytes >= 2 * kMega ? 2 * kMega : 64)) << bytes;
    ASSERT_EQ(taken % (bytes >= 2 * kMega ? 2 * kMega : 64), 0u) << bytes;
    std::memset(storage.data(), 0xab, bytes);  // the sanitizer sees a block that is too small
  }
}

// Two sizes in one class must both fit in its blocks.
TEST(Storage, ReusedBlocksHoldTheLargestOfTheirClass) {
  release_cached_memory();
  for (size_t bytes = 1; bytes < 3000; ++bytes) {
    { const Storage first(bytes, Device::cpu); }
    const Storage second(bytes, Device::cpu);
    std::memset(second.data(), 1, bytes);
  }
}

TEST(Storage, FreedBlocksAreServedAgain) {
  release_cached_memory();
  const void* data = nullptr;
  const MemoryStats start = memory_stats();
  {
    const Storage a(3 * kMega, Device::cpu);
    data = a.data();
  }
  const MemoryStats freed = memory_stats();
  EXPECT_EQ(freed.system_allocations, start.system_allocations + 1);
  EXPECT_EQ(freed.used_bytes, start.used_bytes);
  EXPECT_GE(freed.reserved_bytes, start.reserved_bytes + int64_t(3 * kMega));
  {
    const Storage b(3 * kMega - 5, Device::cpu);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(memory_stats().cached_allocations, start.cached_allocations + 1);
    EXPECT_EQ(memory_stats().system_allocations, start.system_allocations + 1);
    const Storage c(3 * kMega, Device::cpu);  // a second of the class
    EXPECT_NE(c.data(), data);
    EXPECT_EQ(memory_stats().system_allocations, start.system_allocations + 2);
  }
  release_cached_memory();
  EXPECT_EQ(memory_stats().reserved_bytes, memory_stats().used_bytes);
}

TEST(Storage, PeakIsTheLargestUse) {
  reset_peak_memory();
  const MemoryStats start = memory_stats();
  EXPECT_EQ(start.peak_bytes, start.used_bytes);
  { const Storage a(kMega, Device::cpu), b(kMega, Device::cpu); }
  const Storage c(kMega, Device::cpu);
  EXPECT_EQ(memory_stats().peak_bytes, start.used_bytes + int64_t(2 * kMega));
  EXPECT_EQ(memory_stats().used_bytes, start.used_bytes + int64_t(kMega));
  reset_peak_memory();
  EXPECT_EQ(memory_stats().peak_bytes, memory_stats().used_bytes);
}

TEST(Storage, ReleaseKeepsBlocksInUse) {
  const Storage kept(100, Device::cpu);
  std::memset(kept.data(), 7, 100);
  { const Storage freed(100, Device::cpu); }
  release_cached_memory();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(static_cast<const unsigned char*>(kept.data())[i], 7);
  const MemoryStats before = memory_stats();
  { const Storage again(100, Device::cpu); }
  EXPECT_EQ(memory_stats().system_allocations, before.system_allocations + 1);
}

TEST(Storage, SeveralThreads) {
  const int64_t used = memory_stats().used_bytes;
  std::vector<std::thread> threads;
  std::vector<int> broken(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &broken] {
      std::vector<std::unique_ptr<Storage>> held;
      std::vector<unsigned char> marks;
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = size_t(1 + (i * 37 + t * 11) % 500);
        held.push_back(std::make_unique<Storage>(bytes, Device::cpu));
        marks.push_back(static_cast<unsigned char>(t * 50 + i % 50));
        std::memset(held.back()->data(), marks.back(), bytes);
        if (held.size() < 20) continue;
        const unsigned char* data = static_cast<const unsigned char*>(held.front()->data());
        for (size_t b = 0; b < held.front()->bytes(); ++b) broken[size_t(t)] += data[b] != marks.front();
        held.erase(held.begin());
        marks.erase(marks.begin());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, std::vector<int>(4));
  EXPECT_EQ(memory_stats().used_bytes, used);
}

TEST(Storage, Versions) {
  Storage storage(8, Device::cpu);
  EXPECT_EQ(storage.version(), 0u);
  storage.changed();
  storage.changed();
  EXPECT_EQ(storage.version(), 2u);
}

TEST(Storage, BorrowedMemoryIsKeptAliveAndNotFreedToTheCache) {
  const MemoryStats before = memory_stats();
  auto owner = std::make_shared<std::vector<float>>(10, 2.0f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    void* data = owner->data();
    const Storage storage(data, 40, std::move(owner));
    EXPECT_EQ(storage.data(), data);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(memory_stats().used_bytes, before.used_bytes);
  EXPECT_EQ(memory_stats().reserved_bytes, before.reserved_bytes);
}

TEST(Storage, Errors) {
  const int64_t used = memory_stats().used_bytes;
  verify_errors({
      {[] { Storage(16, Device::cuda); }, "Unsupported: storage: device cuda needs the CUDA plugin, which is not loaded"},
      {[] { Storage(size_t{1} << 61, Device::cpu); }, "bad_alloc"},
      {[] { Storage((size_t{1} << 62) + 1, Device::cpu); }, "bad_alloc"},
      {[] { Storage(std::numeric_limits<size_t>::max(), Device::cpu); }, "bad_alloc"},
  });
  EXPECT_EQ(memory_stats().used_bytes, used);
}

TEST(Scratch, GivesItsMemoryBack) {
  const int64_t used = memory_stats().used_bytes;
  {
    const Scratch<double> scratch(1000);
    EXPECT_TRUE(aligned(scratch.data(), 64));
    scratch[999] = 4;
    EXPECT_EQ(scratch.data()[999], 4);
    EXPECT_GE(memory_stats().used_bytes, used + 8000);
    const Scratch<int> none(0);
  }
  EXPECT_EQ(memory_stats().used_bytes, used);
}

}  // namespace
}  // namespace tessera::test
