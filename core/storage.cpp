// The caching allocator.
//
// Size classes are four per power of two (at most 25 % waste), from 64 bytes; from 2 MB on they are whole huge pages of
// 2 MB (less than one page of waste more). Each class has one free list under one mutex: tensor operations are few and large
// beside a lock, and worker threads allocate only through Scratch. Nothing is returned to the system until it refuses a
// block or `release_cached_memory` is called.

#include "tessera/core/storage.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "tessera/core/error.h"

namespace tessera {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kClasses = 4 * 58;

struct SizeClass {
  int index;
  size_t bytes;
};

SizeClass class_of(size_t bytes) {
  const size_t unit = bytes < kHugePage ? kAlignment : kHugePage;
  bytes = bytes <= unit ? unit : (bytes + unit - 1) / unit * unit;
  if (bytes == kAlignment) return {0, kAlignment};
  const int log = std::bit_width(bytes - 1) - 1;                          // 2^log < bytes <= 2^(log + 1)
  const size_t step = size_t{1} << (log - 2);                             // a quarter of the octave
  const size_t quarter = (bytes - (size_t{1} << log) + step - 1) / step;  // 1..4
  return {(log - 6) * 4 + int(quarter), (size_t{1} << log) + quarter * step};
}

class Cache {
 public:
  void* get(size_t bytes) {
    if (bytes > (size_t{1} << 62)) throw std::bad_alloc();
    const SizeClass c = class_of(bytes);
    {
      const std::lock_guard lock(mutex_);
      std::vector<void*>& list = free_[c.index];
      if (!list.empty()) {
        void* data = list.back();
        list.pop_back();
        ++stats_.cached_allocations;
        count_use(c.bytes);
        return data;
      }
    }
    void* data = from_system(c.bytes);
    if (data == nullptr) {
      release();
      data = from_system(c.bytes);
      if (data == nullptr) throw std::bad_alloc();
    }
    const std::lock_guard lock(mutex_);
    // Room for every block of the class, so that `put` never allocates.
    free_[c.index].reserve(size_t(++made_[c.index]));
    ++stats_.system_allocations;
    stats_.reserved_bytes += int64_t(c.bytes);
    count_use(c.bytes);
    return data;
  }

  void put(void* data, size_t bytes) noexcept {
    const SizeClass c = class_of(bytes);
    const std::lock_guard lock(mutex_);
    free_[c.index].push_back(data);
    stats_.used_bytes -= int64_t(c.bytes);
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < kClasses; ++i) {
      for (void* data : free_[i]) std::free(data);
      made_[i] -= int64_t(free_[i].size());
      free_[i].clear();
    }
    stats_.reserved_bytes = stats_.used_bytes;
  }

  MemoryStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes = stats_.used_bytes;
  }

 private:
  static void* from_system(size_t bytes) {
    if (bytes < kHugePage) return std::aligned_alloc(kAlignment, bytes);
    void* data = std::aligned_alloc(kHugePage, bytes);
    if (data != nullptr) madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }

  void count_use(size_t bytes) {
    stats_.used_bytes += int64_t(bytes);
    if (stats_.used_bytes > stats_.peak_bytes) stats_.peak_bytes = stats_.used_bytes;
  }

  std::mutex mutex_;
  std::vector<void*> free_[kClasses];
  int64_t made_[kClasses] = {};
  MemoryStats stats_;
};

/// Never destroyed: tensors in static objects may outlive any order of destruction.
Cache& cache() {
  static Cache* instance = new Cache;
  return *instance;
}

}  // namespace

void* allocate(size_t bytes) { return cache().get(bytes); }
void deallocate(void* data, size_t bytes) noexcept { cache().put(data, bytes); }
MemoryStats memory_stats() { return cache().stats(); }
void reset_peak_memory() { cache().reset_peak(); }
void release_cached_memory() { cache().release(); }

Storage::Storage(size_t bytes, Device device) : bytes_(bytes), device_(device), owned_(true) {
  check<Unsupported>(device == Device::cpu, "storage: device cuda needs the CUDA plugin, which is not loaded");
  data_ = allocate(bytes);
}

Storage::Storage(void* data, size_t bytes, std::shared_ptr<const void> owner)
    : data_(data), bytes_(bytes), owner_(std::move(owner)) {}

Storage::~Storage() {
  if (owned_) deallocate(data_, bytes_);
}

}  // namespace tessera
