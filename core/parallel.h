#pragma once

#include <cstdint>

/// Parallel loops on the one thread pool of the process (oneTBB). Nothing here decides a result: a loop's body must give
/// the same bits wherever its ranges are cut, and sums go through fixed blocks (`parallel_sum`), so every thread count
/// gives the same bits. No oneTBB or std header is pulled in, so CPU kernel files may include this one.
namespace tessera {

/// Threads that loops may use: `set_threads`, else TESSERA_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs allowed.
int threads();

/// 1 or more; not while loops run. Errors: InvalidArgument below 1.
void set_threads(int count);

using RangeBody = void (*)(const void* context, int64_t begin, int64_t end);
void run_ranges(int64_t count, int64_t grain, const void* context, RangeBody body);

/// Calls `f(begin, end)` over ranges that cover [0, count), each of at least `grain / 2` items.
/// One range, on the calling thread, when count <= grain or one thread is allowed. The first exception is rethrown.
template <class F>
inline void parallel_for(int64_t count, int64_t grain, const F& f) {
  if (count <= 0) return;
  if (count <= grain) {
    f(int64_t(0), count);
    return;
  }
  run_ranges(count, grain, &f,
             [](const void* context, int64_t begin, int64_t end) { (*static_cast<const F*>(context))(begin, end); });
}

/// Sums in `values[0]` the `count` values, always in the same tree (neighbours first).
[[gnu::always_inline]] inline double tree_sum(double* values, int64_t count) {
  if (count <= 0) return 0;
  for (int64_t step = 1; step < count; step *= 2)
    for (int64_t i = 0; i + step < count; i += 2 * step) values[i] += values[i + step];
  return values[0];
}

using BlockBody = double (*)(const void* context, int64_t begin, int64_t end);
double run_blocks(int64_t count, int64_t block, const void* context, BlockBody body);

/// Sum of `f(begin, end)` over the blocks [0, block), [block, 2 block), ... of [0, count), added in a fixed tree.
template <class F>
inline double parallel_sum(int64_t count, int64_t block, const F& f) {
  if (count <= 0) return 0;
  if (count <= block) return f(int64_t(0), count);
  return run_blocks(count, block, &f, [](const void* context, int64_t begin, int64_t end) {
    return (*static_cast<const F*>(context))(begin, end);
  });
}

}  // namespace tessera
