#include "tessera/bench/support/side.h"

#include <time.h>

#include <fstream>
#include <string>

namespace tessera::bench {

float element(int64_t i, int64_t j, uint32_t salt) {
  uint32_t h = uint32_t(i) * 2654435761u + uint32_t(j) * 2246822519u + salt * 3266489917u;
  h ^= h >> 15;
  h *= 2246822519u;
  h ^= h >> 13;
  return float(h >> 8) * float(1.0 / (1 << 23)) - 1.0f;
}

int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}

void reset_peak_bytes() { std::ofstream("/proc/self/clear_refs") << 5; }

Timing time_calls(const std::function<void()>& call, double budget, bool processor_time) {
  const auto now = [=] {
    timespec t;
    clock_gettime(processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  };
  call();
  reset_peak_bytes();
  Timing timing;
  for (const double start = now(); timing.seconds.empty() || now() < start + budget;) {
    const double begin = now();
    call();
    timing.seconds.push_back(now() - begin);
  }
  return timing;
}

}  // namespace tessera::bench
