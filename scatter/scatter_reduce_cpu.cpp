// Sums by an unsorted index that is used once are pushed: the rows of src are read in their own order, as fast as memory
// streams, and added to rows of the output, which is small beside src and is prefetched by the index. That is faster than
// sorting first, and than the sorted walk itself while the output fits a cache (scatter_bench). Threads share the work by
// columns, a whole number of cache lines each, and, when there are more threads than lines, by ranges of output rows, for
// which each picks its edges out of the index block by block. Whoever adds, an element's terms come in the order of the
// rows: no atomics, and the same bits for every thread count.
//
// The general scatter, by an index of the source's shape. Elements that can meet lie on one line along the dimension, so
// lines are shared out to threads, some 64 neighbouring ones at a time, and each is walked in order: no atomics, and the
// same bits for every thread count. Where neighbouring lines go to the same place, as with an index that was expanded from
// one number a row, they are taken as vectors. Lines of a single column cannot be shared: scatter_reduce.cpp turns that case
// into rows.

#include "tessera/core/half.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/scatter_reduce_kernels.h"

namespace tessera {
namespace {

using Args = ScatterAlongKernel::Args;

constexpr int64_t kLines = 64;              // taken together
constexpr int64_t kForkElements = 1 << 14;  // below which a second thread costs more than it brings

/// Calls f(first element of the source, first element of the output, lines) for groups of neighbouring lines.
template <class F>
TESSERA_INLINE void for_lines(const Args& k, const F& f) {
  const int64_t groups = (k.inner + kLines - 1) / kLines, inner = k.inner, length = k.length, size = k.size;
  const int64_t each = (length + size) * (inner < kLines ? inner : kLines);
  parallel_for(k.outer * groups, kForkElements / (each + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t o = g / groups, i = g % groups * kLines;
      f(o * length * inner + i, o * size * inner + i, inner - i < kLines ? inner - i : kLines);
    }
  });
}

/// The ids of n neighbouring elements, as the offsets of their places in the output; whether all are the same.
TESSERA_INLINE bool places_of(const Args& k, int64_t from, int64_t n, int64_t* places) {
  int64_t differs = 0;
  if (k.index32 != nullptr)
    for (int64_t i = 0; i < n; ++i) places[i] = k.index32[from + i];
  else
    for (int64_t i = 0; i < n; ++i) places[i] = k.index64[from + i];
  for (int64_t i = 0; i < n; ++i) differs |= places[i] ^ places[0];
  for (int64_t i = 0; i < n; ++i) places[i] = places[i] * k.inner + i;
  return differs == 0;
}

/// Calls f(element of the source, element of the output) for the lines of place d along the dimension; where they go to the
/// same place both step by one, which the compiler turns into vectors.
template <class F>
TESSERA_INLINE void for_elements(const Args& k, int64_t from, int64_t to, int64_t lines, const F& f) {
  int64_t places[kLines];
  if (places_of(k, from, lines, places) && lines >= 4) {
    const int64_t first = to + places[0];
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (int64_t i = 0; i < lines; ++i) f(from + i, first + i);
  } else {
    for (int64_t i = 0; i < lines; ++i) f(from + i, to + places[i]);
  }
}

/// What is done to an output element: added to, multiplied, or taken over by what is better.
enum class Step { add, multiply, best };

template <class T, Step kStep>
void forward(const Args& k) {
  using A = simd::Compute<T>;
  constexpr bool kBest = kStep == Step::best;
  const A sign = k.reduce == Reduce::min ? A(-1) : A(1), empty_value = kStep == Step::multiply ? A(1) : A(0);
  const T* src = static_cast<const T*>(k.src);
  const T* initial = static_cast<const T*>(k.initial);
  A* work = static_cast<A*>(k.work);
  T* out = static_cast<T*>(k.out);
  int32_t* state = k.state;
  const int64_t inner = k.inner, length = k.length, size = k.size;
  const bool include = k.content == Initial::include, has_initial = k.content != Initial::none;
  const bool mean = k.reduce == Reduce::mean;
  for_lines(k, [=, &k](int64_t from, int64_t to, int64_t lines) {
    for (int64_t s = 0; s < size; ++s)
      for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) {
        work[i] = include ? A(initial[i]) * sign : empty_value;
        state[i] = kBest ? -1 : 0;
      }
    for (int64_t d = 0; d < length; ++d)
      for_elements(
          k, from + d * inner, to, lines, [=](int64_t e, int64_t t) __attribute__((always_inline)) {
            const A value = A(src[e]);
            if constexpr (kBest) {
              const A best = work[t], next = value * sign;
              const bool wins = ((state[t] < 0) & !include) | (!(next <= best) & (best == best));
              work[t] = wins ? next : best;
              state[t] = wins ? int32_t(d) : state[t];
            } else {
              work[t] = kStep == Step::multiply ? work[t] * value : work[t] + value;
              ++state[t];
            }
          });
    for (int64_t s = 0; s < size; ++s)
      for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) {
        A value = work[i] * sign;
        const bool empty = kBest ? state[i] < 0 && !include : state[i] == 0;
        const int64_t n = kBest ? 1 : int64_t(state[i]) + (include ? 1 : 0);
        if (mean && n > 0) value = value / A(n);
        if (empty) value = has_initial ? A(initial[i]) : empty_value;
        out[i] = T(value);
      }
  });
}

/// What is before an element goes into its result on the way forth, what is behind it on the way back.
template <class T>
void backward_of_product(const Args& k) {
  const T* src = static_cast<const T*>(k.src);
  const T* initial = static_cast<const T*>(k.initial);
  const T* grad = static_cast<const T*>(k.grad);
  T* work = static_cast<T*>(k.work);
  T* out = static_cast<T*>(k.grad_src);
  const int64_t inner = k.inner, length = k.length, size = k.size;
  const bool include = k.content == Initial::include;
  for_lines(k, [=, &k](int64_t from, int64_t to, int64_t lines) {
    for (int64_t s = 0; s < size; ++s)
      for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) work[i] = include ? grad[i] * initial[i] : grad[i];
    for (int64_t d = 0; d < length; ++d)
      for_elements(
          k, from + d * inner, to, lines, [=](int64_t e, int64_t t) __attribute__((always_inline)) {
            out[e] = work[t];
            work[t] *= src[e];
          });
    for (int64_t s = 0; s < size; ++s)
      for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) work[i] = T(1);
    for (int64_t d = length - 1; d >= 0; --d)
      for_elements(
          k, from + d * inner, to, lines, [=](int64_t e, int64_t t) __attribute__((always_inline)) {
            out[e] *= work[t];
            work[t] *= src[e];
          });
  });
}

template <class T>
void backward(const Args& k) {
  using A = simd::Compute<T>;
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.grad_src);
  const int32_t* state = k.state;
  const int64_t inner = k.inner, length = k.length, more = k.content == Initial::include ? 1 : 0;
  const Reduce reduce = k.reduce;
  for_lines(k, [=, &k](int64_t from, int64_t to, int64_t lines) {
    for (int64_t d = 0; d < length; ++d) {
      const int64_t row = from + d * inner;
      if (reduce == Reduce::sum)
        for_elements(
            k, row, to, lines, [=](int64_t e, int64_t t) __attribute__((always_inline)) { out[e] = grad[t]; });
      else if (reduce == Reduce::mean)
        for_elements(
            k, row, to, lines, [=](int64_t e, int64_t t) __attribute__((always_inline)) {
              out[e] = T(A(grad[t]) / A(int64_t(state[t]) + more));
            });
      else
        for_elements(
            k, row, to, lines, [=](int64_t e, int64_t t) __attribute__((always_inline)) {
              out[e] = state[t] == int32_t(d) ? grad[t] : T();
            });
    }
  });
}

template <class T>
void along(const Args& k) {
  const bool back = k.grad != nullptr;
  switch (k.reduce) {
    case Reduce::sum:
    case Reduce::mean: return back ? backward<T>(k) : forward<T, Step::add>(k);
    case Reduce::max:
    case Reduce::min: return back ? backward<T>(k) : forward<T, Step::best>(k);
    case Reduce::mul:
      if constexpr (sizeof(T) > 2) return back ? backward_of_product<T>(k) : forward<T, Step::multiply>(k);
  }
}

constexpr int64_t kBlock = 2048;                    // edges picked out of the index at a time
constexpr int64_t kAhead = 24;                      // rows between a prefetch and its use
constexpr int64_t kCachedBytes = int64_t{1} << 18;  // an output up to this size is not prefetched
constexpr int64_t kForkSums = int64_t{1} << 17;     // elements of src below which a second thread costs more than it brings

/// to[0, n) += from[0, n).
template <class T>
TESSERA_INLINE void add_columns(T* to, const T* from, int64_t n) {
  constexpr int L = simd::kLanes<T>;
  int64_t j = 0;
  for (; j + 4 * L <= n; j += 4 * L)
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v)
      simd::store<L>(to + j + v * L, simd::load<L>(to + j + v * L) + simd::load<L>(from + j + v * L));
  for (; j + L <= n; j += L) simd::store<L>(to + j, simd::load<L>(to + j) + simd::load<L>(from + j));
  if constexpr (L > 4)
    for (; j + 4 <= n; j += 4) simd::store<4>(to + j, simd::load<4>(to + j) + simd::load<4>(from + j));
  for (; j < n; ++j) to[j] += from[j];
}

/// A part of the work: columns [column, column + columns) of output rows [row_begin, row_end).
struct Part {
  int64_t column, columns, row_begin, row_end;
  bool all_rows;
};

/// to[0, n) += from[0, n); n is V vectors, or anything for V = 0.
template <class T, int V>
TESSERA_INLINE void add_row(T* to, const T* from, int64_t n) {
  constexpr int L = simd::kLanes<T>;
  if constexpr (V == 0)
    add_columns(to, from, n);
  else
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) simd::store<L>(to + v * L, simd::load<L>(to + v * L) + simd::load<L>(from + v * L));
}

template <class T>
TESSERA_INLINE void prefetch_row(const T* row, int64_t columns) {
  for (int64_t j = 0; j < columns; j += 64 / int64_t(sizeof(T))) __builtin_prefetch(row + j, 0, 2);
}

template <class T, class I, int V>
void add_part(const ScatterAddKernel::Args& k, const I* index, const Part& part, bool prefetch) {
  const int64_t width = k.width, columns = part.columns, ahead = columns < 128 ? columns : 128;
  const T* src = static_cast<const T*>(k.src) + part.column;
  T* out = static_cast<T*>(k.out) + part.column;
  int32_t* counts = part.column == 0 ? k.counts : nullptr;
  if (counts != nullptr)
    for (int64_t r = part.row_begin; r < part.row_end; ++r) counts[r] = 0;
  if (part.all_rows) {
    const int64_t last = k.count - kAhead;
    for (int64_t e = 0; e < k.count; ++e) {
      if (prefetch && e < last) prefetch_row(out + int64_t(index[e + kAhead]) * width, ahead);
      add_row<T, V>(out + int64_t(index[e]) * width, src + e * width, columns);
    }
    if (counts != nullptr)
      for (int64_t e = 0; e < k.count; ++e) ++counts[index[e]];
    return;
  }
  int32_t edge[kBlock], target[kBlock];
  for (int64_t begin = 0; begin < k.count; begin += kBlock) {
    const int64_t block = k.count - begin < kBlock ? k.count - begin : kBlock;
    const I* ids = index + begin;
    int64_t n = 0;
    for (int64_t i = 0; i < block; ++i) {
      edge[n] = int32_t(i);
      target[n] = int32_t(ids[i]);
      n += ids[i] >= part.row_begin && ids[i] < part.row_end ? 1 : 0;
    }
    const T* rows = src + begin * width;
    for (int64_t i = 0; i < n; ++i) {
      if (i + kAhead < n) {
        prefetch_row(rows + int64_t(edge[i + kAhead]) * width, ahead);
        if (prefetch) prefetch_row(out + int64_t(target[i + kAhead]) * width, ahead);
      }
      add_row<T, V>(out + int64_t(target[i]) * width, rows + int64_t(edge[i]) * width, columns);
    }
    if (counts != nullptr)
      for (int64_t i = 0; i < n; ++i) ++counts[target[i]];
  }
}

template <class T, class I>
void add_rows(const ScatterAddKernel::Args& k, const I* index) {
  constexpr int64_t kLine = 64 / int64_t(sizeof(T));
  const int64_t lines = (k.width + kLine - 1) / kLine, useful = k.count * k.width / kForkSums;
  const int64_t workers = useful < 1 ? 1 : useful < threads() ? useful : threads();
  const int64_t groups = workers < lines ? workers : lines, ranges = lines == 0 ? 1 : (workers + groups - 1) / groups;
  const bool prefetch = k.rows * k.width * int64_t(sizeof(T)) > kCachedBytes;
  parallel_for(groups * ranges, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      const int64_t g = p % groups, r = p / groups;
      const int64_t from = lines * g / groups * kLine, to = lines * (g + 1) / groups * kLine;
      const Part part{from, (to < k.width ? to : k.width) - from, k.rows * r / ranges, k.rows * (r + 1) / ranges,
                      ranges == 1};
      constexpr int L = simd::kLanes<T>;
      switch (part.columns % L == 0 ? part.columns / L : 0) {
        case 1: add_part<T, I, 1>(k, index, part, prefetch); break;
        case 2: add_part<T, I, 2>(k, index, part, prefetch); break;
        case 4: add_part<T, I, 4>(k, index, part, prefetch); break;
        case 8: add_part<T, I, 8>(k, index, part, prefetch); break;
        default: add_part<T, I, 0>(k, index, part, prefetch);
      }
    }
  });
}

template <class T>
void add(const ScatterAddKernel::Args& k) {
  if (k.width == 0 || k.rows == 0) return;
  k.index32 != nullptr ? add_rows<T>(k, k.index32) : add_rows<T>(k, k.index64);
}

}  // namespace

template <Isa>
void ScatterAddKernel::cpu(const Args& args) {
  args.is_double ? add<double>(args) : add<float>(args);
}
template void ScatterAddKernel::cpu<kIsa>(const Args&);

template <Isa>
void ScatterAlongKernel::cpu(const Args& args) {
  switch (args.type) {
    case FloatType::f32: return along<float>(args);
    case FloatType::f64: return along<double>(args);
    case FloatType::bf16: return along<bf16>(args);
    case FloatType::f16: return along<f16>(args);
  }
}
template void ScatterAlongKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
