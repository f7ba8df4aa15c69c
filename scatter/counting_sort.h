#pragma once

#include <cstdint>

namespace tessera {

/// Records to be grouped by key, and where the groups go. Keys must lie in [0, num_keys): checked by the caller.
struct CountingSort {
  int64_t count = 0;
  int64_t num_keys = 0;
  const int32_t* key = nullptr;     ///< count
  const int32_t* value = nullptr;   ///< count, carried along; null: the row of `rowptr` that holds the position
  const int64_t* rowptr = nullptr;  ///< num_rows + 1, when value is null; null as well: no value is carried
  int64_t num_rows = 0;
  const int64_t* id = nullptr;   ///< count, carried along; null: the position
  int64_t* offsets = nullptr;    ///< num_keys + 1: where each key's group begins
  int32_t* out_value = nullptr;  ///< count; null: not wanted
  int64_t* out_id = nullptr;     ///< count
};

/// Stable counting sort: a group keeps the order of the input. The same result for every thread count.
/// Cost: two passes when the groups fit the cache or the input is small, else four passes with about 12 bytes of scratch
/// per record; no comparison, no composite key that could overflow.
void counting_sort(const CountingSort& sort);

}  // namespace tessera
