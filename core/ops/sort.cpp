// Elements of four bytes are sorted by digits (a counting sort for each, the lowest first): three passes over a long line,
// about ten times as quick as comparing, and a pass is cut into blocks that all threads share. Short lines and longer
// elements are compared. Equal elements are told apart by their index everywhere, so that the result does not depend on the
// way taken.

#include "tessera/core/ops/sort.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstring>
#include <functional>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

/// Whether x stands before y in rising order.
template <class T>
bool before(T x, T y) {
  return x < y || (is_nan(y) && !is_nan(x));
}

constexpr uint32_t kNanRank = UINT32_MAX, kZeroRank = 0x80000000u;

/// An unsigned number in the order of x.
uint32_t rank_of(float x) {
  if (x != x) return kNanRank;
  const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);  // -0 is 0
  return bits ^ ((bits >> 31) != 0 ? UINT32_MAX : 0x80000000u);
}
uint32_t rank_of(int32_t x) { return uint32_t(x) ^ 0x80000000u; }

/// What has that rank, `at` being where to look when several do (zeros and NaNs have signs).
float value_of(uint32_t rank, const float* at) {
  if (rank == kNanRank || rank == kZeroRank) return *at;
  return std::bit_cast<float>(rank ^ ((rank >> 31) != 0 ? 0x80000000u : UINT32_MAX));
}
int32_t value_of(uint32_t rank, const int32_t*) { return int32_t(rank ^ 0x80000000u); }

/// Counting sort by digits of the upper four bytes, the lowest first (the lower four are indices, which rise already).
/// Returns where the result is: `items` or `spare`.
template <int kBits>
uint64_t* sort_by_digits(uint64_t* items, uint64_t* spare, int64_t n) {
  constexpr int kPasses = (32 + kBits - 1) / kBits, kBuckets = 1 << kBits;
  uint32_t count[kPasses][kBuckets] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int p = 0; p < kPasses; ++p) ++count[p][items[i] >> (32 + p * kBits) & (kBuckets - 1)];
  for (int p = 0; p < kPasses; ++p) {
    uint32_t* next = count[p];
    const int shift = 32 + p * kBits;
    if (next[items[0] >> shift & (kBuckets - 1)] == uint32_t(n)) continue;
    uint32_t total = 0;
    for (int b = 0; b < kBuckets; ++b) {
      const uint32_t here = next[b];
      next[b] = total;
      total += here;
    }
    for (int64_t i = 0; i < n; ++i) spare[next[items[i] >> shift & (kBuckets - 1)]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

/// The same on all threads: blocks count their digits, a sum over digits and blocks tells each where its own go.
uint64_t* sort_by_digits_in_blocks(uint64_t* items, uint64_t* spare, int64_t n) {
  constexpr int kBits = 11, kPasses = 3, kBuckets = 1 << kBits;
  const int64_t block = std::max<int64_t>(1 << 16, n / 64 + 1), blocks = (n + block - 1) / block;
  Scratch<uint32_t> counts(blocks * kBuckets);
  for (int p = 0; p < kPasses; ++p) {
    const int shift = 32 + p * kBits;
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        uint32_t* count = counts.data() + b * kBuckets;
        std::memset(count, 0, kBuckets * sizeof(uint32_t));
        for (int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) ++count[items[i] >> shift & (kBuckets - 1)];
      }
    });
    uint32_t total = 0;
    for (int64_t d = 0; d < kBuckets; ++d)
      for (int64_t b = 0; b < blocks; ++b) {
        const uint32_t here = counts[b * kBuckets + d];
        counts[b * kBuckets + d] = total;
        total += here;
      }
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        uint32_t* next = counts.data() + b * kBuckets;
        for (int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i)
          spare[next[items[i] >> shift & (kBuckets - 1)]++] = items[i];
      }
    });
    std::swap(items, spare);
  }
  return items;
}

constexpr int64_t kDigits = 96;           // lines from this length on are sorted by digits of 8 bits,
constexpr int64_t kLongDigits = 1 << 14;  // of 11 bits,
constexpr int64_t kBlocks = 1 << 17;      // and by all threads together

/// The first k of n in order. Equal elements follow their index, so any algorithm is stable.
template <class Item, class Before>
void first_in_order(Item* items, int64_t n, int64_t k, Before comes_first) {
  if (k < n && k > 0) std::nth_element(items, items + k - 1, items + n, comes_first);
  std::sort(items, items + k, comes_first);
}

/// The first `k` of each line in the order asked for, of four-byte elements. An element becomes a number, with its index
/// below: no branch on floats. Few of many are kept in a heap, whose worst is compared with each that comes.
template <class T>
void order_short_elements(const T* x, const Lines& lines, int64_t k, bool descending, T* values, int32_t* indices) {
  const int64_t n = lines.length, inner = lines.inner;
  const uint32_t flip = descending ? UINT32_MAX : 0;
  const bool few = k < n && k <= n / 16;
  parallel_for(lines.outer * inner, (1 << 10) / (n + 1) + 1, [=](int64_t begin, int64_t end) {
    Scratch<uint64_t> room(few ? k + 1 : n), more(few ? 0 : n);
    for (int64_t line = begin; line < end; ++line) {
      const int64_t outer = line / inner, column = line % inner;
      const T* from = x + outer * n * inner + column;
      const auto packed = [=](int64_t i) { return uint64_t(rank_of(from[i * inner]) ^ flip) << 32 | uint64_t(i); };
      uint64_t* items = room.data();
      if (few) {
        for (int64_t i = 0; i < k; ++i) items[i] = packed(i);
        std::make_heap(items, items + k);
        for (int64_t i = k; i < n && k > 0; ++i) {
          const uint64_t item = packed(i);
          if (item >= items[0]) continue;
          items[k] = item;
          std::push_heap(items, items + k + 1);
          std::pop_heap(items, items + k + 1);
        }
        std::sort_heap(items, items + k);
      } else {
        parallel_for(n, kBlocks, [=](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) items[i] = packed(i);
        });
        if (k < n || n < kDigits)
          first_in_order(items, n, k, std::less<uint64_t>());
        else if (n < kLongDigits)
          items = sort_by_digits<8>(items, more.data(), n);
        else
          items = n < kBlocks ? sort_by_digits<11>(items, more.data(), n) : sort_by_digits_in_blocks(items, more.data(), n);
      }
      T* of_values = values + outer * k * inner + column;
      int32_t* of_indices = indices + outer * k * inner + column;
      parallel_for(k, kBlocks, [=](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          const int32_t at = int32_t(uint32_t(items[i]));
          of_indices[i * inner] = at;
          of_values[i * inner] = value_of(uint32_t(items[i] >> 32) ^ flip, from + at * inner);
        }
      });
    }
  });
}

/// The same of eight-byte elements, by comparing them.
template <class T>
void order_long_elements(const T* x, const Lines& lines, int64_t k, bool descending, T* values, int32_t* indices) {
  const int64_t n = lines.length, inner = lines.inner;
  parallel_for(lines.outer * inner, (1 << 10) / (n + 1) + 1, [=](int64_t begin, int64_t end) {
    struct Item {
      T value;
      int32_t index;
    };
    Scratch<Item> items(n);
    for (int64_t line = begin; line < end; ++line) {
      const int64_t outer = line / inner, column = line % inner;
      const T* from = x + outer * n * inner + column;
      for (int64_t i = 0; i < n; ++i) items[i] = {from[i * inner], int32_t(i)};
      first_in_order(items.data(), n, k, [descending](const Item& a, const Item& b) {
        if (before(a.value, b.value)) return !descending;
        if (before(b.value, a.value)) return descending;
        return a.index < b.index;
      });
      for (int64_t i = 0; i < k; ++i) {
        indices[(outer * k + i) * inner + column] = items[i].index;
        values[(outer * k + i) * inner + column] = items[i].value;
      }
    }
  });
}

Sorted ordered(const char* op, const Tensor& x, int dim, int64_t k, bool descending) {
  const Lines lines = lines_of(op, x.shape(), dim);
  check(lines.length <= INT32_MAX, "{}: x has shape {}, but lines of more than 2^31 - 1 elements are not supported", op,
        x.shape());
  const Shape shape = x.shape().with(dim, k);
  Sorted out{Tensor::empty(shape, x.dtype(), x.device()), Tensor::empty(shape, DType::i32, x.device())};
  const auto run = [&]<class T>(T) {
    T* values = out.values.mutable_data<T>();
    int32_t* indices = out.indices.mutable_data<int32_t>();
    if constexpr (sizeof(T) == 4)
      order_short_elements(x.data<T>(), lines, k, descending, values, indices);
    else
      order_long_elements(x.data<T>(), lines, k, descending, values, indices);
  };
  switch (x.dtype()) {
    case DType::f32: run(float()); break;
    case DType::f64: run(double()); break;
    case DType::i32: run(int32_t()); break;
    case DType::i64: run(int64_t()); break;
    default: fail<Unsupported>("{}: dtype {} is not supported, use f32, f64, i32 or i64", op, x.dtype());
  }
  record(op, out.values, {x},
         [indices = Saved(out.indices), of_x = x.shape(), lines, k](const Tensor& grad, Gradients& into) {
           Tensor result = zeros(of_x, grad.dtype(), grad.device());
           with_float(grad.dtype(), "sort", [&]<class T>() {
             const T* from = grad.data<T>();
             const int32_t* index = indices.get().data<int32_t>();
             T* to = result.mutable_data<T>();
             const int64_t inner = lines.inner;
             parallel_for(lines.outer, (1 << 14) / (k * inner + 1) + 1, [&](int64_t begin, int64_t end) {
               for (int64_t o = begin; o < end; ++o)
                 for (int64_t i = 0; i < k; ++i)
                   for (int64_t j = 0; j < inner; ++j) {
                     const int64_t at = (o * k + i) * inner + j;
                     to[(o * lines.length + index[at]) * inner + j] = from[at];
                   }
             });
           });
           into.add(0, std::move(result));
         });
  return out;
}

}  // namespace

Sorted sort(const Tensor& x, int dim, bool descending) {
  const int at = dim_of("sort", x.shape(), dim);
  return ordered("sort", x, at, x.dim(at), descending);
}

Sorted topk(const Tensor& x, int64_t k, int dim, bool largest) {
  const int at = dim_of("topk", x.shape(), dim);
  check(k >= 0 && k <= x.dim(at), "topk: k is {} but needs to be in [0, {}]", k, x.dim(at));
  return ordered("topk", x, at, k, largest);
}

}  // namespace tessera
