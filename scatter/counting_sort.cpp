// Stable counting sort on one or two levels.
//
// Small inputs: count the keys, sum up, place each record behind the last of its key. Each placement touches a random
// line of the output, which is fine while the output sits in the cache.
// Large inputs would miss the cache and the TLB on every placement, so they go through buckets of neighbouring keys first:
// the input is cut into pieces, each piece counts its records per bucket, a sum over (bucket, piece) gives every piece
// its own place in every bucket, and the pieces copy their records there (a few hundred output streams, each written in
// order). Then each bucket, which fits the second-level cache, is sorted on its own. Both levels are stable and every
// place follows from counts alone, so the result does not depend on the number of pieces or threads.

#include "tessera/scatter/counting_sort.h"

#include <algorithm>
#include <bit>

#include "tessera/core/parallel.h"
#include "tessera/core/storage.h"

namespace tessera {
namespace {

constexpr int64_t kSmall = 1 << 17;          // records sorted on one level by one thread
constexpr int64_t kBucketRecords = 1 << 15;  // aimed at: 32 Ki records of 24 bytes in and out
constexpr int64_t kMaxBuckets = 1024;        // one open output line each, together within the second-level cache

/// Calls f(position, key, value, id) for the records of [begin, end) in order.
template <class F>
void for_records(const CountingSort& sort, int64_t begin, int64_t end, const F& f) {
  const auto id = [&](int64_t i) { return sort.id != nullptr ? sort.id[i] : i; };
  if (sort.value != nullptr) {
    for (int64_t i = begin; i < end; ++i) f(sort.key[i], sort.value[i], id(i));
  } else if (sort.rowptr != nullptr) {
    int64_t row = std::upper_bound(sort.rowptr, sort.rowptr + sort.num_rows + 1, begin) - sort.rowptr - 1;
    for (int64_t i = begin; i < end; ++row) {
      const int64_t last = std::min(end, sort.rowptr[row + 1]);
      for (; i < last; ++i) f(sort.key[i], int32_t(row), id(i));
    }
  } else {
    for (int64_t i = begin; i < end; ++i) f(sort.key[i], 0, id(i));
  }
}

/// Turns counts into the beginnings of groups, from `start`.
void counts_to_offsets(int64_t* counts, int64_t num_keys, int64_t start) {
  for (int64_t k = 0; k < num_keys; ++k) {
    const int64_t n = counts[k];
    counts[k] = start;
    start += n;
  }
}

/// Undoes the advance of each beginning to its group's end, which is the next beginning.
void rewind_offsets(int64_t* offsets, int64_t num_keys, int64_t start) {
  for (int64_t k = num_keys - 1; k > 0; --k) offsets[k] = offsets[k - 1];
  if (num_keys > 0) offsets[0] = start;
}

void sort_small(const CountingSort& sort) {
  std::fill_n(sort.offsets, sort.num_keys, int64_t{0});
  for (int64_t i = 0; i < sort.count; ++i) ++sort.offsets[sort.key[i]];
  counts_to_offsets(sort.offsets, sort.num_keys, 0);
  for_records(sort, 0, sort.count, [&](int32_t key, int32_t value, int64_t id) {
    const int64_t place = sort.offsets[key]++;
    if (sort.out_value != nullptr) sort.out_value[place] = value;
    sort.out_id[place] = id;
  });
  rewind_offsets(sort.offsets, sort.num_keys, 0);
  sort.offsets[sort.num_keys] = sort.count;
}

template <class Id>
struct Record {
  int32_t key, value;
  Id id;
};

template <class Id>
void sort_large(const CountingSort& sort) {
  const int64_t aim = std::clamp<int64_t>(sort.count / kBucketRecords, 1, kMaxBuckets);
  const int shift = std::bit_width(uint64_t((sort.num_keys - 1) / aim));
  const int64_t buckets = ((sort.num_keys - 1) >> shift) + 1;
  const int64_t pieces = 4 * int64_t(threads()), piece = (sort.count + pieces - 1) / pieces;
  Scratch<int64_t> next(pieces * buckets);  // of each piece in each bucket: counts, then the next free place
  Scratch<int64_t> bucket_begin(buckets + 1);
  Scratch<Record<Id>> records(sort.count);

  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      int64_t* counts = next.data() + p * buckets;
      std::fill_n(counts, buckets, int64_t{0});
      const int64_t end = std::min(sort.count, (p + 1) * piece);
      for (int64_t i = p * piece; i < end; ++i) ++counts[sort.key[i] >> shift];
    }
  });
  int64_t total = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    bucket_begin[b] = total;
    for (int64_t p = 0; p < pieces; ++p) {
      const int64_t n = next[p * buckets + b];
      next[p * buckets + b] = total;
      total += n;
    }
  }
  bucket_begin[buckets] = total;
  parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      int64_t* places = next.data() + p * buckets;
      for_records(sort, std::min(sort.count, p * piece), std::min(sort.count, (p + 1) * piece),
                  [&](int32_t key, int32_t value, int64_t id) {
                    records[places[key >> shift]++] = {key, value, Id(id)};
                  });
    }
  });
  parallel_for(buckets, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t begin = bucket_begin[b], end = bucket_begin[b + 1];
      const int64_t key0 = b << shift, keys = std::min(sort.num_keys, (b + 1) << shift) - key0;
      int64_t* offsets = sort.offsets + key0;
      std::fill_n(offsets, keys, int64_t{0});
      for (int64_t i = begin; i < end; ++i) ++offsets[records[i].key - key0];
      counts_to_offsets(offsets, keys, begin);
      for (int64_t i = begin; i < end; ++i) {
        const Record<Id>& r = records[i];
        const int64_t place = offsets[r.key - key0]++;
        if (sort.out_value != nullptr) sort.out_value[place] = r.value;
        sort.out_id[place] = int64_t(r.id);
      }
      rewind_offsets(offsets, keys, begin);
    }
  });
  sort.offsets[sort.num_keys] = sort.count;
}

}  // namespace

void counting_sort(const CountingSort& sort) {
  if (sort.count <= kSmall)
    sort_small(sort);
  else if (sort.count <= int64_t{1} << 32)
    sort_large<uint32_t>(sort);
  else
    sort_large<int64_t>(sort);
}

}  // namespace tessera
