// Softmax and log-sum-exp by segment, on CPUs.
//
// A chunk of segments is copied together, row by row, into a buffer that stays in the cache, some columns at a time: the
// random accesses are made once, and the exponentials of all its segments run in one loop over full vectors. The buffer is
// then scaled and copied back. A hub's pieces first leave their maximum and sum (or dot product) as partial results, which
// are joined in order, and are then walked once more with what came out.
// Sums of one column run in a fixed number of strands, sums of several column by column: the order of a sum depends on the
// width and the instruction set only.

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/segment_softmax_kernels.h"

namespace tessera {
namespace {

using Args = SegmentSoftmaxKernel::Args;

constexpr int64_t kBuffer = 8192;           // elements of a buffer: at least one column of a hub's piece
constexpr int64_t kColumns = 64;            // taken together at most
constexpr int64_t kForkElements = 1 << 14;  // rows x width below which a second thread costs more than it brings
static_assert(kBuffer >= kHubRows);

template <class T>
constexpr T kInfinity = T(__builtin_inf());

/// What x is shifted by: an infinite maximum is no shift.
template <class T>
TESSERA_INLINE T shift_of(T maximum) {
  return maximum == kInfinity<T> || maximum == -kInfinity<T> ? T(0) : maximum;
}

/// Rows of a chunk, `columns` of them from column `first` on, in a buffer.
template <class T>
struct Block {
  const Args& k;
  int64_t begin, rows, first, columns;

  int64_t at(int64_t r) const { return (k.plan.order != nullptr ? k.plan.order[begin + r] : begin + r) * k.width + first; }
  void load(const void* from, T* buffer) const {
    const T* x = static_cast<const T*>(from);
    if (columns == 1) {
      for (int64_t r = 0; r < rows; ++r) buffer[r] = x[at(r)];
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = x + at(r);
      for (int64_t j = 0; j < columns; ++j) buffer[r * columns + j] = row[j];
    }
  }
  void save(const T* buffer) const {
    T* out = static_cast<T*>(k.out);
    if (columns == 1) {
      for (int64_t r = 0; r < rows; ++r) out[at(r)] = buffer[r];
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      T* row = out + at(r);
      for (int64_t j = 0; j < columns; ++j) row[j] = buffer[r * columns + j];
    }
  }
};

/// Largest of each column; NaN is passed over here and shows in the sum. -inf without rows.
template <class T>
TESSERA_INLINE void largest(const T* x, int64_t rows, int64_t columns, T* out) {
  constexpr int L = simd::kLanes<T>;
  for (int64_t j = 0; j < columns; ++j) out[j] = -kInfinity<T>;
  int64_t r = 0;
  if (columns == 1 && rows >= L) {
    simd::Vec<T, L> m = simd::load<L>(x);
    for (r = L; r + L <= rows; r += L) {
      const simd::Vec<T, L> v = simd::load<L>(x + r);
      m = v > m ? v : m;
    }
    for (int i = 0; i < L; ++i) out[0] = m[i] > out[0] ? m[i] : out[0];
  }
  for (; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) out[j] = x[r * columns + j] > out[j] ? x[r * columns + j] : out[j];
}

/// Sum of each column.
template <class T>
TESSERA_INLINE void totals(const T* x, int64_t rows, int64_t columns, T* out) {
  constexpr int L = simd::kLanes<T>;
  for (int64_t j = 0; j < columns; ++j) out[j] = T(0);
  int64_t r = 0;
  if (columns == 1 && rows >= L) {
    simd::Vec<T, L> sum = simd::load<L>(x);
    for (r = L; r + L <= rows; r += L) sum += simd::load<L>(x + r);
    for (int half = L / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
    out[0] = sum[0];
  }
  for (; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) out[j] += x[r * columns + j];
}

template <class T>
TESSERA_INLINE void subtract(T* x, int64_t rows, int64_t columns, const T* by) {
  if (columns == 1) {
    const T one = by[0];
    for (int64_t r = 0; r < rows; ++r) x[r] -= one;
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) x[r * columns + j] -= by[j];
}

template <class T>
TESSERA_INLINE void multiply(T* x, int64_t rows, int64_t columns, const T* by) {
  if (columns == 1) {
    const T one = by[0];
    for (int64_t r = 0; r < rows; ++r) x[r] *= one;
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < columns; ++j) x[r * columns + j] *= by[j];
}

template <class T>
TESSERA_INLINE void exponentials(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = simd::exp(x[i]);
}

/// ln(sum * e^shift), joined with an initial term.
template <class T>
TESSERA_INLINE T log_of(T maximum, T sum, const T* initial) {
  T shift = shift_of(maximum);
  if (initial != nullptr) {
    const T first = *initial;
    const T larger = shift_of(sum == T(0) || first > maximum ? first : maximum);
    sum = (sum == T(0) ? T(0) : sum * simd::exp(shift - larger)) + simd::exp(first - larger);
    shift = larger;
  }
  if (sum == T(0)) return -kInfinity<T>;
  if (!(sum < kInfinity<T>)) return sum;  // infinity, NaN
  return shift + simd::log(sum);
}

/// Calls f(segment, first row in the block, rows) for the chunk's segments.
template <class F>
TESSERA_INLINE void for_segments(const SegmentView& plan, const SegmentChunk& chunk, const F& f) {
  for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s)
    f(s, plan.offsets[s] - chunk.begin, plan.offsets[s + 1] - plan.offsets[s]);
}

/// Whole segments of a chunk.
template <class T>
void whole(const Args& k, const SegmentChunk& chunk, const Block<T>& block, T* x, T* g) {
  const int64_t columns = block.columns, count = block.rows * columns;
  T value[kColumns], other[kColumns];
  switch (k.op) {
    case SegmentSoftmax::softmax:
      block.load(k.x, x);
      for_segments(k.plan, chunk, [&](int64_t, int64_t row, int64_t rows) {
        largest(x + row * columns, rows, columns, value);
        for (int64_t j = 0; j < columns; ++j) value[j] = shift_of(value[j]);
        subtract(x + row * columns, rows, columns, value);
      });
      exponentials(x, count);
      for_segments(k.plan, chunk, [&](int64_t, int64_t row, int64_t rows) {
        totals(x + row * columns, rows, columns, value);
        for (int64_t j = 0; j < columns; ++j) value[j] = T(1) / value[j];
        multiply(x + row * columns, rows, columns, value);
      });
      // 0 times the inverse of 0 is NaN, as it should be.
      block.save(x);
      return;
    case SegmentSoftmax::softmax_grad:
      block.load(k.x, x);
      block.load(k.grad, g);
      for_segments(k.plan, chunk, [&](int64_t, int64_t row, int64_t rows) {
        T* y = x + row * columns;
        T* gy = g + row * columns;
        for (int64_t i = 0; i < rows * columns; ++i) gy[i] *= y[i];
        totals(gy, rows, columns, value);
        multiply(y, rows, columns, value);
        for (int64_t i = 0; i < rows * columns; ++i) y[i] = gy[i] - y[i];
      });
      block.save(x);
      return;
    case SegmentSoftmax::logsumexp: {
      const T* initial = static_cast<const T*>(k.initial);
      T* out = static_cast<T*>(k.out);
      block.load(k.x, x);
      for_segments(k.plan, chunk, [&](int64_t s, int64_t row, int64_t rows) {
        largest(x + row * columns, rows, columns, value);
        for (int64_t j = 0; j < columns; ++j) out[s * k.width + block.first + j] = value[j];
        for (int64_t j = 0; j < columns; ++j) value[j] = shift_of(value[j]);
        subtract(x + row * columns, rows, columns, value);
      });
      exponentials(x, count);
      for_segments(k.plan, chunk, [&](int64_t s, int64_t row, int64_t rows) {
        totals(x + row * columns, rows, columns, value);
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t i = s * k.width + block.first + j;
          out[i] = log_of(out[i], value[j], initial != nullptr ? initial + i : nullptr);
        }
      });
      return;
    }
    case SegmentSoftmax::logsumexp_grad: {
      const T* lse = static_cast<const T*>(k.lse);
      const T* grad = static_cast<const T*>(k.grad);
      block.load(k.x, x);
      const auto walk = [&](int64_t s, int64_t row, int64_t rows, bool before) {
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t i = s * k.width + block.first + j;
          value[j] = lse[i] == -kInfinity<T> ? T(0) : lse[i];
          other[j] = lse[i] == -kInfinity<T> ? T(0) : grad[i];
        }
        before ? subtract(x + row * columns, rows, columns, value) : multiply(x + row * columns, rows, columns, other);
      };
      const auto each = [&](bool before) {
        if (chunk.slot >= 0)
          walk(chunk.segment_begin, 0, block.rows, before);
        else
          for_segments(k.plan, chunk, [&](int64_t s, int64_t row, int64_t rows) { walk(s, row, rows, before); });
      };
      each(true);
      exponentials(x, count);
      each(false);
      block.save(x);
      return;
    }
  }
}

/// A hub's piece, before the join: maximum and sum, or the dot product.
template <class T>
void piece(const Args& k, const Block<T>& block, T* partial, T* x, T* g) {
  const int64_t columns = block.columns, count = block.rows * columns;
  T* first = partial + block.first;
  T* second = partial + k.width + block.first;
  block.load(k.x, x);
  if (k.op == SegmentSoftmax::softmax_grad) {
    block.load(k.grad, g);
    for (int64_t i = 0; i < count; ++i) x[i] *= g[i];
    totals(x, block.rows, columns, second);
    return;
  }
  T shift[kColumns];
  largest(x, block.rows, columns, first);
  for (int64_t j = 0; j < columns; ++j) shift[j] = shift_of(first[j]);
  subtract(x, block.rows, columns, shift);
  exponentials(x, count);
  totals(x, block.rows, columns, second);
}

/// Joins a hub's pieces into its first slot.
template <class T>
void join(const Args& k, const SegmentHub& hub, T* partials) {
  const int64_t width = k.width;
  T* total = partials + hub.slot_begin * 2 * width;
  for (int64_t s = hub.slot_begin + 1; s < hub.slot_end; ++s) {
    const T* next = partials + s * 2 * width;
    for (int64_t j = 0; j < width; ++j) {
      if (k.op == SegmentSoftmax::softmax_grad) {
        total[width + j] += next[width + j];
        continue;
      }
      const T larger = next[j] > total[j] ? next[j] : total[j], shift = shift_of(larger);
      const T a = total[width + j], b = next[width + j];
      total[width + j] = (a == T(0) ? a : a * simd::exp(shift_of(total[j]) - shift)) +
                         (b == T(0) ? b : b * simd::exp(shift_of(next[j]) - shift));
      total[j] = larger;
    }
  }
  if (k.op != SegmentSoftmax::logsumexp) return;
  const T* initial = static_cast<const T*>(k.initial);
  for (int64_t j = 0; j < width; ++j) {
    const int64_t i = hub.segment * width + j;
    static_cast<T*>(k.out)[i] = log_of(total[j], total[width + j], initial != nullptr ? initial + i : nullptr);
  }
}

/// A hub's piece, after the join.
template <class T>
void finish(const Args& k, const Block<T>& block, const T* total, T* x, T* g) {
  const int64_t columns = block.columns, count = block.rows * columns;
  T value[kColumns];
  block.load(k.x, x);
  if (k.op == SegmentSoftmax::softmax_grad) {
    block.load(k.grad, g);
    for (int64_t i = 0; i < count; ++i) g[i] *= x[i];
    multiply(x, block.rows, columns, total + k.width + block.first);
    for (int64_t i = 0; i < count; ++i) x[i] = g[i] - x[i];
  } else {
    for (int64_t j = 0; j < columns; ++j) value[j] = shift_of(total[block.first + j]);
    subtract(x, block.rows, columns, value);
    exponentials(x, count);
    for (int64_t j = 0; j < columns; ++j) value[j] = T(1) / total[k.width + block.first + j];
    multiply(x, block.rows, columns, value);
  }
  block.save(x);
}

/// Calls f(block) for the column blocks of rows [begin, end).
template <class T, class F>
TESSERA_INLINE void for_columns(const Args& k, int64_t begin, int64_t end, const F& f) {
  const int64_t rows = end - begin, fit = kBuffer / (rows > 0 ? rows : 1), most = fit < kColumns ? fit : kColumns;
  for (int64_t first = 0; first < k.width; first += most)
    f(Block<T>{k, begin, rows, first, k.width - first < most ? k.width - first : most});
}

template <class T>
void softmax(const Args& k) {
  const int64_t width = k.width;
  if (width == 0) return;
  T* partials = static_cast<T*>(k.partials);
  const bool joined = k.op != SegmentSoftmax::logsumexp_grad;
  const int64_t grain = kForkElements / (kSegmentChunkCost * width) + 1;
  parallel_for(k.plan.num_chunks, grain, [&](int64_t first, int64_t last) {
    T x[kBuffer], g[kBuffer];
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      for_columns<T>(k, chunk.begin, chunk.end, [&](const Block<T>& block) {
        if (chunk.slot >= 0 && joined)
          piece(k, block, partials + chunk.slot * 2 * width, x, g);
        else
          whole(k, chunk, block, x, g);
      });
    }
  });
  if (!joined) return;
  parallel_for(k.plan.num_hubs, 16, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) join(k, k.plan.hubs[h], partials);
  });
  if (k.op == SegmentSoftmax::logsumexp) return;
  for (int64_t h = 0; h < k.plan.num_hubs; ++h) {
    const SegmentHub& hub = k.plan.hubs[h];
    const int64_t start = k.plan.offsets[hub.segment], stop = k.plan.offsets[hub.segment + 1];
    parallel_for(hub.slot_end - hub.slot_begin, grain, [&](int64_t first, int64_t last) {
      T x[kBuffer], g[kBuffer];
      for (int64_t p = first; p < last; ++p) {
        const int64_t begin = start + p * kHubRows, end = begin + kHubRows < stop ? begin + kHubRows : stop;
        for_columns<T>(k, begin, end,
                       [&](const Block<T>& block) { finish(k, block, partials + hub.slot_begin * 2 * width, x, g); });
      }
    });
  }
}

}  // namespace

template <Isa>
void SegmentSoftmaxKernel::cpu(const Args& args) {
  args.is_double ? softmax<double>(args) : softmax<float>(args);
}
template void SegmentSoftmaxKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
