#include "tessera/scatter/ids.h"

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 16;

/// Whether ids[begin, end) lie in [0, bound); copies them to `out` unless it is null.
template <class T>
bool check_and_copy(const T* ids, int64_t begin, int64_t end, int64_t bound, int32_t* out) {
  using U = std::make_unsigned_t<T>;
  bool outside = false;
  if (out != nullptr) {
    for (int64_t i = begin; i < end; ++i) {
      outside |= U(ids[i]) >= U(bound);
      out[i] = int32_t(ids[i]);
    }
  } else {
    for (int64_t i = begin; i < end; ++i) outside |= U(ids[i]) >= U(bound);
  }
  return !outside;
}

void check_ids(const char* op, const char* what, const Tensor& ids, int64_t bound, int32_t* out) {
  const auto apply = [&]<class T>() {
    const T* values = ids.data<T>();
    // No i32 is beyond a bound that i32 cannot hold.
    const int64_t limit = sizeof(T) == 4 ? std::min<int64_t>(bound, int64_t{1} << 31) : bound;
    std::atomic<bool> good{true};
    parallel_for(ids.numel(), kGrain, [&](int64_t begin, int64_t end) {
      if (!check_and_copy(values, begin, end, limit, out)) good.store(false, std::memory_order_relaxed);
    });
    if (good) return;
    for (int64_t i = 0; i < ids.numel(); ++i)
      check(0 <= values[i] && values[i] < bound, "{}: {}[{}] is {} but needs to be in [0, {})", op, what, i, values[i],
            bound);
  };
  ids.dtype() == DType::i32 ? apply.operator()<int32_t>() : apply.operator()<int64_t>();
}

}  // namespace

void check_id_list(const char* op, const char* what, const Tensor& ids) {
  check(ids.defined(), "{}: {} is undefined", op, what);
  check(ids.dtype() == DType::i32 || ids.dtype() == DType::i64, "{}: {} has dtype {} but needs i32 or i64", op, what,
        ids.dtype());
  check(ids.ndim() == 1, "{}: {} has shape {} but needs one dimension", op, what, ids.shape());
}

void check_id_range(const char* op, const char* what, const Tensor& ids, int64_t bound) {
  check_ids(op, what, ids, bound, nullptr);
}

Tensor narrow_ids(const char* op, const char* what, const Tensor& ids, int64_t bound) {
  Tensor out = Tensor::empty(ids.shape(), DType::i32);
  check_ids(op, what, ids, bound, out.mutable_data<int32_t>());
  return out;
}

bool is_sorted(const int32_t* values, int64_t count) {
  std::atomic<bool> sorted{true};
  parallel_for(count - 1, kGrain, [&](int64_t begin, int64_t end) {
    // In blocks, so that the usual unsorted list is left at once.
    for (int64_t i = begin; i < end && sorted.load(std::memory_order_relaxed);) {
      bool falls = false;
      for (const int64_t last = std::min(end, i + 1024); i < last; ++i) falls |= values[i] > values[i + 1];
      if (falls) sorted.store(false, std::memory_order_relaxed);
    }
  });
  return sorted;
}

void offsets_of_sorted(const int32_t* keys, int64_t count, int64_t num_keys, int64_t* offsets) {
  parallel_for(num_keys + 1, 1 << 12, [=](int64_t begin, int64_t end) {
    const int32_t* at = std::lower_bound(keys, keys + count, begin, [](int32_t a, int64_t b) { return a < b; });
    for (int64_t k = begin; k < end; ++k) {
      while (at != keys + count && *at < k) ++at;
      offsets[k] = at - keys;
    }
  });
}

}  // namespace tessera
