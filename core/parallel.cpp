#include "tessera/core/parallel.h"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/core/error.h"

#if TESSERA_STD_THREADS  // ThreadSanitizer knows no uninstrumented oneTBB
#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#else
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace tessera {
namespace {

int from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  // OMP_NUM_THREADS may be a list, one value per nesting level: the first counts.
  check((*end == '\0' || *end == ',') && value >= 1 && value <= 4096,
        "{} is '{}' but needs a number of threads from 1 to 4096", variable, text);
  return int(value);
}

int default_threads() {
  if (const int n = from_environment("TESSERA_NUM_THREADS")) return n;
  if (const int n = from_environment("OMP_NUM_THREADS")) return n;
#if TESSERA_STD_THREADS
  return std::max(1, int(std::thread::hardware_concurrency()));
#else
  return tbb::info::default_concurrency();
#endif
}

/// The pool: an arena of n threads, and the global limit that lets it have them even beyond the CPUs.
struct Pool {
  explicit Pool(int n)
      : count(n)
#if !TESSERA_STD_THREADS
        ,
        limit(tbb::global_control::max_allowed_parallelism, size_t(n)),
        arena(n)
#endif
  {
  }
  int count;
#if !TESSERA_STD_THREADS
  tbb::global_control limit;
  tbb::task_arena arena;
#endif
};

std::mutex pool_mutex;

std::unique_ptr<Pool>& pool_slot() {
  static std::unique_ptr<Pool> slot = std::make_unique<Pool>(default_threads());
  return slot;
}

}  // namespace

int threads() { return pool_slot()->count; }

void set_threads(int count) {
  check(count >= 1 && count <= 4096, "set_threads: {} threads asked but needs 1 to 4096", count);
  const std::lock_guard lock(pool_mutex);
  std::unique_ptr<Pool>& slot = pool_slot();
  if (slot->count == count) return;
  slot.reset();
  slot = std::make_unique<Pool>(count);
}

#if TESSERA_STD_THREADS

void run_ranges(int64_t count, int64_t grain, const void* context, RangeBody body) {
  const int64_t step = std::max<int64_t>(1, grain), pieces = (count + step - 1) / step;
  const int workers = int(std::min<int64_t>(threads(), pieces));
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::mutex error_mutex;
  const auto work = [&] {
    for (int64_t i = next++; i < pieces; i = next++) {
      try {
        body(context, i * step, std::min(count, (i + 1) * step));
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < workers; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (error) std::rethrow_exception(error);
}

#else

void run_ranges(int64_t count, int64_t grain, const void* context, RangeBody body) {
  Pool& pool = *pool_slot();
  if (pool.count == 1) {
    body(context, 0, count);
    return;
  }
  pool.arena.execute([&] {
    tbb::parallel_for(tbb::blocked_range<int64_t>(0, count, size_t(grain < 1 ? 1 : grain)),
                      [&](const tbb::blocked_range<int64_t>& range) { body(context, range.begin(), range.end()); });
  });
}

#endif

double run_blocks(int64_t count, int64_t block, const void* context, BlockBody body) {
  const int64_t blocks = (count + block - 1) / block;
  std::vector<double> sums(static_cast<size_t>(blocks));
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      sums[size_t(b)] = body(context, b * block, (b + 1) * block < count ? (b + 1) * block : count);
  });
  return tree_sum(sums.data(), blocks);
}

}  // namespace tessera
