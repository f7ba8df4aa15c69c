// Reductions of the lines of a row-major array along one dimension. A line is cut into blocks of a constant size; a block
// is reduced by one thread in an order of its own, and block results are joined in a fixed tree (sums) or in order
// (extremes): the bits do not depend on the thread count. Sums run in double. Lines that stand side by side (inner > 1) are
// reduced a chunk of columns at a time, row after row, so that memory is read in its order.

#include "tessera/core/ops/reduce_kernels.h"

#include "tessera/core/ops/softmax_lines_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/ops/doubles_kernels.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 15;
constexpr int64_t kColumns = 256;  // of a chunk: its sums stay in the first-level cache

TESSERA_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/// Block `b` of line group `o`: elements [begin, begin + count) of it; columns [column, column + width).
struct Task {
  int64_t o, b, begin, count, column, width;
};

/// Calls f(task) for every block of every group of lines.
template <class F>
TESSERA_INLINE void each_task(int64_t outer, int64_t length, int64_t inner, F f) {
  const int64_t block = ReduceKernel::block_of(inner), blocks = length == 0 ? 1 : (length + block - 1) / block,
                chunks = (inner + kColumns - 1) / kColumns, work = least(length, block) * least(inner, kColumns) + 16;
  parallel_for(outer * blocks * chunks, kGrain / work + 1, [=](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t c = chunks == 1 ? 0 : t % chunks, rest = chunks == 1 ? t : t / chunks,
                    b = blocks == 1 ? 0 : rest % blocks;
      f(Task{blocks == 1 ? rest : rest / blocks, b, b * block, least(block, length - b * block), c * kColumns,
             least(kColumns, inner - c * kColumns)});
    }
  });
}

/// Sum of term(x, centre) over a contiguous line: four vectors of doubles hide the latency of addition.
template <class T, class F>
TESSERA_INLINE double line_sum(const T* x, int64_t count, double centre, F term) {
  constexpr int kWide = simd::kLanes<double>;
  using D = simd::Vec<double, kWide>;
  const auto wide = [=](int64_t at) { return term(simd::load_doubles(x + at), centre); };
  D sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * kWide <= count; i += 4 * kWide)
    for (int u = 0; u < 4; ++u) sum[u] += wide(i + u * kWide);
  for (; i + kWide <= count; i += kWide) sum[0] += wide(i);
  double rest = 0;
  for (; i < count; ++i) rest += term(double(x[i]), centre);
  const D all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double lane[kWide];
  simd::store<kWide>(lane, all);
  for (int step = kWide / 2; step > 0; step /= 2)
    for (int l = 0; l < step; ++l) lane[l] += lane[l + step];
  return lane[0] + rest;
}

/// term(x, centre) of each element.
template <class T, class F>
TESSERA_INLINE void reduce(const ReduceKernel::Args& k, F term) {
  const T* x = static_cast<const T*>(k.x);
  const T* centre = static_cast<const T*>(k.centre);
  T* out = static_cast<T*>(k.out);
  const int64_t length = k.length, inner = k.inner, block = ReduceKernel::block_of(inner);
  const bool whole = length <= block, root = k.root;
  const int64_t blocks = whole ? 1 : (length + block - 1) / block;
  const double factor = k.factor;
  double* partials = k.partials;
  const auto finish = [=](double sum) { return T(root ? simd::sqrt(sum * factor) : sum * factor); };
  each_task(k.outer, length, inner, [=](const Task& t) {
    if (inner == 1) {
      const double c = centre != nullptr ? double(centre[t.o]) : 0;
      const double sum = line_sum(x + t.o * length + t.begin, t.count, c, term);
      if (whole)
        out[t.o] = finish(sum);
      else
        partials[t.o * blocks + t.b] = sum;
      return;
    }
    double sums[kColumns];
    const int64_t width = t.width;
    for (int64_t j = 0; j < width; ++j) sums[j] = 0;
    const T* row = x + (t.o * length + t.begin) * inner + t.column;
    if (centre != nullptr) {
      const T* c = centre + t.o * inner + t.column;
      for (int64_t i = 0; i < t.count; ++i, row += inner)
        for (int64_t j = 0; j < width; ++j) sums[j] += term(double(row[j]), double(c[j]));
    } else {
      for (int64_t i = 0; i < t.count; ++i, row += inner)
        for (int64_t j = 0; j < width; ++j) sums[j] += term(double(row[j]), 0.0);
    }
    if (whole) {
      for (int64_t j = 0; j < width; ++j) out[t.o * inner + t.column + j] = finish(sums[j]);
    } else {
      double* to = partials + (t.o * blocks + t.b) * inner + t.column;
      for (int64_t j = 0; j < width; ++j) to[j] = sums[j];
    }
  });
  if (whole) return;
  parallel_for(k.outer, kGrain / (blocks * inner) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      double* p = partials + o * blocks * inner;
      for (int64_t step = 1; step < blocks; step *= 2)
        for (int64_t b = 0; b + step < blocks; b += 2 * step)
          for (int64_t j = 0; j < inner; ++j) p[b * inner + j] += p[(b + step) * inner + j];
      for (int64_t j = 0; j < inner; ++j) out[o * inner + j] = finish(p[j]);
    }
  });
}

template <class T>
void run_reduce(const ReduceKernel::Args& k) {
  switch (k.op) {
    case ReduceOp::sum: return reduce<T>(k, [](auto x, double) { return x; });
    case ReduceOp::sum_abs: return reduce<T>(k, [](auto x, double) { return x < 0 ? -x : x; });
    case ReduceOp::sum_square: return reduce<T>(k, [](auto x, double) { return x * x; });
    case ReduceOp::sum_square_from: return reduce<T>(k, [](auto x, double c) { return (x - c) * (x - c); });
  }
}

/// Whether x beats the best so far: larger, or the first NaN.
template <class T>
TESSERA_INLINE bool beats(T x, T best) {
  return x > best || (x != x && best == best);
}

/// Whether any lane of a comparison is true.
template <class M>
TESSERA_INLINE bool any(M mask) {
  using Words = typename simd::VecOf<uint64_t, int(sizeof(M) / 8)>::type;
  const Words words = (Words)mask;
  uint64_t all = 0;
  for (int i = 0; i < int(sizeof(M) / 8); ++i) all |= words[i];
  return all != 0;
}

/// The place of the largest key of a contiguous line, in two passes over vectors: the largest value, then its first place.
template <class T, class F>
TESSERA_INLINE int32_t first_best(const T* x, int64_t count, F key) {
  constexpr int kLane = simd::kLanes<T>;
  using V = simd::Vec<T, kLane>;
  const auto at = [=](int64_t i) { return key(simd::load<kLane>(x + i)); };
  V top[2] = {simd::splat<kLane>(key(x[0])), simd::splat<kLane>(key(x[0]))};
  auto nan = top[0] != top[0];
  int64_t i = 0;
  for (; i + 2 * kLane <= count; i += 2 * kLane)
    for (int u = 0; u < 2; ++u) {
      const V v = at(i + u * kLane);
      top[u] = v > top[u] ? v : top[u];
      nan |= v != v;
    }
  bool has_nan = any(nan);
  T lane[2 * kLane], best = key(x[0]);
  simd::store<kLane>(lane, top[0]);
  simd::store<kLane>(lane + kLane, top[1]);
  for (int l = 0; l < 2 * kLane; ++l) best = lane[l] > best ? lane[l] : best;
  for (; i < count; ++i) {
    const T v = key(x[i]);
    best = v > best ? v : best;
    has_nan = has_nan || v != v;
  }
  const V wanted = simd::splat<kLane>(best);
  i = 0;
  if (has_nan) {
    while (!(key(x[i]) != key(x[i]))) ++i;
    return int32_t(i);
  }
  for (; i + 2 * kLane <= count; i += 2 * kLane)
    if (any((at(i) == wanted) | (at(i + kLane) == wanted))) break;
  while (i < count && key(x[i]) != best) ++i;
  return int32_t(i);
}

/// The same of the short rest of a line.
template <class T, class F>
TESSERA_INLINE int32_t few_best(const T* x, int64_t count, F key) {
  int32_t place = 0;
  for (int64_t i = 1; i < count; ++i)
    if (beats(key(x[i]), key(x[place]))) place = int32_t(i);
  return place;
}

/// The best of each of `width` lines that stand side by side, `count` elements from number `begin` on.
template <class T, class F>
TESSERA_INLINE void columns_best(const T* row, int64_t step, int64_t begin, int64_t count, int64_t width, F key, T* best,
                                 int32_t* at) {
  for (int64_t j = 0; j < width; ++j) {
    best[j] = key(row[j]);
    at[j] = int32_t(begin);
  }
  for (int64_t i = 1; i < count; ++i) {
    row += step;
    const int32_t here = int32_t(begin + i);
    for (int64_t j = 0; j < width; ++j) {
      const T v = key(row[j]);
      const bool better = beats(v, best[j]);
      best[j] = better ? v : best[j];
      at[j] = better ? here : at[j];
    }
  }
}

/// Short lines: sixteen at a time, turned into columns. One by one, half of their comparisons would be mispredicted.
template <class T, class F>
TESSERA_INLINE void short_lines(const T* x, int64_t lines, int64_t length, T* out, int32_t* place, F key) {
  constexpr int kGroup = softmax_lines::kGroup;
  parallel_for((lines + kGroup - 1) / kGroup, kGrain / (kGroup * length) + 1, [=](int64_t begin, int64_t end) {
    alignas(64) T buffer[softmax_lines::kShort * kGroup];
    const T* rows[kGroup];
    T best[kGroup];
    int32_t at[kGroup];
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kGroup;
      const int count = int(least(kGroup, lines - first));
      for (int l = 0; l < count; ++l) rows[l] = x + (first + l) * length;
      softmax_lines::gather_rows(rows, count, length, buffer);
      columns_best(buffer, kGroup, 0, length, kGroup, key, best, at);
      for (int l = 0; l < count; ++l) {
        place[first + l] = at[l];
        if (out != nullptr) out[first + l] = rows[l][at[l]];
      }
    }
  });
}

/// The largest key(x) of each line.
template <class T, class F>
TESSERA_INLINE void extreme(const ExtremeKernel::Args& k, F key) {
  const T* x = static_cast<const T*>(k.x);
  T* out = static_cast<T*>(k.out);
  int32_t* place = k.place;
  const int64_t length = k.length, inner = k.inner, block = ReduceKernel::block_of(inner);
  const bool whole = length <= block;
  const int64_t blocks = whole ? 1 : (length + block - 1) / block;
  T* values = static_cast<T*>(k.partial_values);
  int32_t* places = k.partial_places;
  if (inner == 1 && length <= softmax_lines::kShort) return short_lines(x, k.outer, length, out, place, key);
  // Values are handled as keys; the value itself is read at its place in the end.
  each_task(k.outer, length, inner, [=](const Task& t) {
    if (inner == 1) {
      const T* line = x + t.o * length + t.begin;
      const int32_t at = t.count >= 16 ? first_best(line, t.count, key) : few_best(line, t.count, key);
      if (whole) {
        place[t.o] = at;
        if (out != nullptr) out[t.o] = line[at];
      } else {
        values[t.o * blocks + t.b] = key(line[at]);
        places[t.o * blocks + t.b] = int32_t(t.begin + at);
      }
      return;
    }
    T best[kColumns];
    int32_t at[kColumns];
    const int64_t width = t.width;
    columns_best(x + (t.o * length + t.begin) * inner + t.column, inner, t.begin, t.count, width, key, best, at);
    if (whole) {
      const int64_t to = t.o * inner + t.column;
      for (int64_t j = 0; j < width; ++j) {
        place[to + j] = at[j];
        if (out != nullptr) out[to + j] = x[(t.o * length + at[j]) * inner + t.column + j];
      }
    } else {
      const int64_t to = (t.o * blocks + t.b) * inner + t.column;
      for (int64_t j = 0; j < width; ++j) {
        values[to + j] = best[j];
        places[to + j] = at[j];
      }
    }
  });
  if (whole) return;
  parallel_for(k.outer * inner, kGrain / blocks + 1, [=](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const int64_t o = line / inner, j = line % inner, first = o * blocks * inner + j;
      T best = values[first];
      int32_t at = places[first];
      for (int64_t b = 1; b < blocks; ++b)
        if (beats(values[first + b * inner], best)) {
          best = values[first + b * inner];
          at = places[first + b * inner];
        }
      place[line] = at;
      if (out != nullptr) out[line] = x[(o * length + at) * inner + j];
    }
  });
}

template <class T>
void run_extreme(const ExtremeKernel::Args& k) {
  switch (k.op) {
    case ExtremeOp::max: return extreme<T>(k, [](auto v) { return v; });
    case ExtremeOp::min: return extreme<T>(k, [](auto v) { return -v; });
    case ExtremeOp::max_abs: return extreme<T>(k, [](auto v) { return v < 0 ? -v : v; });
  }
}

}  // namespace

template <Isa>
void ReduceKernel::cpu(const Args& args) {
  args.is_double ? run_reduce<double>(args) : run_reduce<float>(args);
}
template void ReduceKernel::cpu<kIsa>(const Args&);

template <Isa>
void ExtremeKernel::cpu(const Args& args) {
  args.is_double ? run_extreme<double>(args) : run_extreme<float>(args);
}
template void ExtremeKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
