// A window is first reduced over its rows, for all columns of the image at once, which is a plain vector loop; what is left
// is a reduction of that line over the window's columns. A 3 x 3 window with stride 2 so costs 3 vector steps a column of
// the image and 3 scalar ones an output, where window by window it would be 9 scalar ones. oneDNN's pooling would want its
// own order of channels, says nothing about NaN and has no float64.

#include "tessera/core/ops/pool2d_kernels.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

/// Whether `value` at `place` takes over from `best` at `at`: larger, or the first NaN, or equal and earlier in its plane.
template <class T>
TESSERA_INLINE bool beats(T value, int32_t place, T best, int32_t at) {
  const bool nan = value != value, best_nan = best != best, tie = (value == best) | (nan & best_nan);
  return ((value > best) & !best_nan) | (nan & !best_nan) | (tie & (place < at));
}

template <class T>
void max_plane(const PoolKernel::Args& k, const T* x, T* out, int32_t* place) {
  const int64_t width = k.in_size[1];
  T* __restrict line = reinterpret_cast<T*>(k.line);
  int32_t* __restrict at = k.line_place;
  for (int64_t i = 0; i < k.out_size[0]; ++i) {
    const Window rows = k.rows[i];
    const T* __restrict row = x + rows.begin * width;
    for (int64_t c = 0; c < width; ++c) {
      line[c] = row[c];
      at[c] = int32_t(rows.begin * width + c);
    }
    for (int32_t r = rows.begin + k.dilation[0]; r < rows.end; r += k.dilation[0]) {
      row = x + r * width;
      const int32_t first = int32_t(r * width);
      for (int64_t c = 0; c < width; ++c) {
        const T value = row[c], best = line[c];
        const bool better = (value > best) | ((value != value) & (best == best));
        line[c] = better ? value : best;
        at[c] = better ? first + int32_t(c) : at[c];
      }
    }
    for (int64_t j = 0; j < k.out_size[1]; ++j) {
      const Window columns = k.columns[j];
      T best = line[columns.begin];
      int32_t best_at = at[columns.begin];
      for (int32_t c = columns.begin + k.dilation[1]; c < columns.end; c += k.dilation[1]) {
        const bool better = beats(line[c], at[c], best, best_at);
        best = better ? line[c] : best;
        best_at = better ? at[c] : best_at;
      }
      out[i * k.out_size[1] + j] = best;
      if (place != nullptr) place[i * k.out_size[1] + j] = best_at;
    }
  }
}

/// Whether the one window is the whole plane.
bool is_whole(const PoolKernel::Args& k) {
  return k.out_size[0] == 1 && k.out_size[1] == 1 && k.rows[0].begin == 0 && k.columns[0].begin == 0 &&
         k.rows[0].end == k.in_size[0] && k.columns[0].end == k.in_size[1];
}

template <class T>
double plane_sum(const T* x, int64_t count) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int l = 0; l < 8; ++l) lane[l] += double(x[i + l]);
  double sum = 0;
  for (; i < count; ++i) sum += double(x[i]);
  return sum + (((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])));
}

template <class T>
void average_plane(const PoolKernel::Args& k, const T* x, T* out) {
  const int64_t width = k.in_size[1];
  if (is_whole(k)) {
    *out = T(plane_sum(x, k.in_size[0] * width) / (double(k.rows[0].count) * k.columns[0].count));
    return;
  }
  double* __restrict line = k.line;
  for (int64_t i = 0; i < k.out_size[0]; ++i) {
    const Window rows = k.rows[i];
    for (int64_t c = 0; c < width; ++c) line[c] = 0;
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      const T* __restrict row = x + r * width;
      for (int64_t c = 0; c < width; ++c) line[c] += double(row[c]);
    }
    for (int64_t j = 0; j < k.out_size[1]; ++j) {
      const Window columns = k.columns[j];
      double sum = 0;
      for (int32_t c = columns.begin; c < columns.end; ++c) sum += line[c];
      out[i * k.out_size[1] + j] = T(sum / (double(rows.count) * columns.count));
    }
  }
}

template <class T>
void max_gradient(const PoolKernel::Args& k, const T* grad, const int32_t* place, T* x) {
  for (int64_t i = 0; i < k.in_size[0] * k.in_size[1]; ++i) x[i] = 0;
  for (int64_t i = 0; i < k.out_size[0] * k.out_size[1]; ++i) x[place[i]] += grad[i];
}

template <class T>
void average_gradient(const PoolKernel::Args& k, const T* grad, T* x) {
  const int64_t width = k.in_size[1];
  double* __restrict line = k.line;
  if (is_whole(k)) {
    const T share = T(double(*grad) / (double(k.rows[0].count) * k.columns[0].count));
    for (int64_t i = 0; i < k.in_size[0] * width; ++i) x[i] = share;
    return;
  }
  for (int64_t i = 0; i < k.in_size[0] * width; ++i) x[i] = 0;
  for (int64_t i = 0; i < k.out_size[0]; ++i) {
    const Window rows = k.rows[i];
    for (int64_t c = 0; c < width; ++c) line[c] = 0;
    for (int64_t j = 0; j < k.out_size[1]; ++j) {
      const Window columns = k.columns[j];
      const double share = double(grad[i * k.out_size[1] + j]) / (double(rows.count) * columns.count);
      for (int32_t c = columns.begin; c < columns.end; ++c) line[c] += share;
    }
    for (int32_t r = rows.begin; r < rows.end; ++r) {
      T* __restrict row = x + r * width;
      for (int64_t c = 0; c < width; ++c) row[c] += T(line[c]);
    }
  }
}

template <class T>
void pool(const PoolKernel::Args& k) {
  const int64_t in = k.in_size[0] * k.in_size[1], out = k.out_size[0] * k.out_size[1];
  const T* from = static_cast<const T*>(k.from);
  T* to = static_cast<T*>(k.to);
  for (int64_t p = 0; p < k.planes; ++p) {
    int32_t* place = k.place != nullptr ? k.place + p * out : nullptr;
    switch (k.op) {
      case PoolKernel::Op::max: max_plane(k, from + p * in, to + p * out, place); break;
      case PoolKernel::Op::average: average_plane(k, from + p * in, to + p * out); break;
      case PoolKernel::Op::max_gradient: max_gradient(k, from + p * out, place, to + p * in); break;
      case PoolKernel::Op::average_gradient: average_gradient(k, from + p * out, to + p * in); break;
    }
  }
}

}  // namespace

template <Isa>
void PoolKernel::cpu(const Args& args) {
  args.is_double ? pool<double>(args) : pool<float>(args);
}
template void PoolKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
