#pragma once

#include <atomic>
#include <mutex>
#include <utility>

namespace tessera {

/// A value computed on demand and kept. Two threads that come first at the same time both compute it and one result is
/// kept: holding a lock meanwhile could deadlock, since a thread that waits for its parallel loop may run another's work.
template <class T>
class Once {
 public:
  template <class F>
  const T& get(const F& compute) {
    if (!ready_.load(std::memory_order_acquire)) {
      T made = compute();
      const std::lock_guard lock(mutex_);
      if (!ready_.load(std::memory_order_relaxed)) {
        value_ = std::move(made);
        ready_.store(true, std::memory_order_release);
      }
    }
    return value_;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  T value_;
};

}  // namespace tessera
