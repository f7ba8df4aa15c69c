#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tessera/core/device.h"

/// Memory of tensors, and the caching allocator behind it: freed blocks are kept by size class and handed out again, so
/// that a training step after the first asks nothing of the system. Blocks of 2 MB and more are aligned to 2 MB and
/// advised to use huge pages (random row gathers are TLB-bound otherwise).
namespace tessera {

/// A block of memory that tensors share, with the count of changes made to it.
class Storage {
 public:
  /// At least `bytes` bytes, aligned to 64, uninitialised. Errors: std::bad_alloc.
  Storage(size_t bytes, Device device);
  /// Memory of the caller, kept alive by `owner`; must outlive the storage when `owner` is empty.
  Storage(void* data, size_t bytes, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// How often the content was opened for writing; views share it.
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void changed() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Device device_ = Device::cpu;
  bool owned_ = false;
  std::atomic<uint64_t> version_{0};
  std::shared_ptr<const void> owner_;
};

struct MemoryStats {
  int64_t system_allocations = 0;  ///< blocks asked of the system since the start
  int64_t cached_allocations = 0;  ///< blocks served from the cache since the start
  int64_t used_bytes = 0;          ///< in blocks that are in use
  int64_t peak_bytes = 0;          ///< largest used_bytes since the start or `reset_peak_memory`
  int64_t reserved_bytes = 0;      ///< in use or cached
};

MemoryStats memory_stats();
void reset_peak_memory();

/// Gives every cached block back to the system.
void release_cached_memory();

/// A block of the caching allocator for scratch that is not a tensor; `bytes` is passed again to `deallocate`.
void* allocate(size_t bytes);
void deallocate(void* data, size_t bytes) noexcept;

/// Uninitialised scratch of `count` elements of a trivial type for the length of a scope.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : data_(static_cast<T*>(allocate(size_t(count) * sizeof(T)))), bytes_(size_t(count) * sizeof(T)) {}
  ~Scratch() { deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_;
  size_t bytes_;
};

}  // namespace tessera
