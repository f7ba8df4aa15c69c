#include "tessera/bench/sparse/spmm_loops.h"

#include <algorithm>
#include <vector>

#include "tessera/core/parallel.h"

namespace tessera::bench {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

template <int V, int kLevel>
void gather_range(const float* x, int64_t width, const int32_t* col, int64_t begin, int64_t end, int64_t count,
                  int64_t ahead) {
  Vec sum[V] = {};
  const int64_t safe = std::max(begin, std::min(end, count - ahead));
  for (int64_t j = begin; j < safe; ++j) {
    if constexpr (kLevel > 0) {
      const char* next = reinterpret_cast<const char*>(x + col[j + ahead] * width);
#pragma GCC unroll 32
      for (int i = 0; i < V * kLanes * 4; i += 64) __builtin_prefetch(next + i, 0, kLevel);
    }
    const float* row = x + col[j] * width;
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) sum[v] += *reinterpret_cast<const Vec*>(row + v * kLanes);
  }
  for (int64_t j = safe; j < end; ++j) {
    const float* row = x + col[j] * width;
#pragma GCC unroll 32
    for (int v = 0; v < V; ++v) sum[v] += *reinterpret_cast<const Vec*>(row + v * kLanes);
  }
  asm volatile("" : : "g"(&sum) : "memory");
}

template <int V>
void gather(const float* x, int64_t width, const int32_t* col, int64_t count, Prefetch prefetch) {
  parallel_for(count, 1 << 14, [=](int64_t begin, int64_t end) {
    if (prefetch.ahead == 0)
      gather_range<V, 0>(x, width, col, begin, end, count, 0);
    else if (prefetch.level == 1)
      gather_range<V, 3>(x, width, col, begin, end, count, prefetch.ahead);
    else
      gather_range<V, 2>(x, width, col, begin, end, count, prefetch.ahead);
  });
}

}  // namespace

void gather_rows(const float* x, int64_t width, const int32_t* col, int64_t count, Prefetch prefetch) {
  constexpr int kMost = kLanes == 16 ? 16 : 8;
  for (int64_t at = 0; at < width;) {
    const int64_t vectors = (width - at) / kLanes;
    if (vectors >= 16 && kMost == 16) {
      gather<kMost>(x + at, width, col, count, prefetch);
      at += kMost * kLanes;
    } else if (vectors >= 8) {
      gather<8>(x + at, width, col, count, prefetch);
      at += 8 * kLanes;
    } else if (vectors >= 4) {
      gather<4>(x + at, width, col, count, prefetch);
      at += 4 * kLanes;
    } else if (vectors >= 2) {
      gather<2>(x + at, width, col, count, prefetch);
      at += 2 * kLanes;
    } else if (vectors >= 1) {
      gather<1>(x + at, width, col, count, prefetch);
      at += kLanes;
    } else {
      break;
    }
  }
}

void torch_shaped_spmm(const int64_t* rowptr, const int64_t* col, const float* values, const float* x, int64_t rows,
                       int64_t width, float* out) {
  // Ranges of rows with about equal numbers of edges, by one scan, one range per thread.
  const int64_t parts = threads(), edges = rowptr[rows];
  std::vector<int64_t> cut(size_t(parts) + 1, rows);
  cut[0] = 0;
  for (int64_t row = 0, part = 1; row < rows && part < parts; ++row)
    if (rowptr[row] >= edges * part / parts) cut[size_t(part++)] = row;
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part)
      for (int64_t row = cut[size_t(part)]; row < cut[size_t(part) + 1]; ++row) {
        float* __restrict to = out + row * width;
        for (int64_t j = 0; j < width; ++j) to[j] = 0;
        for (int64_t e = rowptr[row]; e < rowptr[row + 1]; ++e) {
          const float value = values[e];
          const float* from = x + col[e] * width;
          asm volatile("" : : : "memory");  // as there: the row is stored and loaded again for every edge
          for (int64_t j = 0; j < width; ++j) to[j] += value * from[j];
        }
      }
  });
}

void torch_shaped_max(const int64_t* rowptr, const int64_t* col, const float* values, const float* x, int64_t rows,
                      int64_t width, float* out, int64_t* arg) {
  const int64_t edges = rowptr[rows];
  std::fill_n(out, rows * width, 0.0f);
  std::fill_n(arg, rows * width, edges);
  parallel_for(rows, 1, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      if (rowptr[row] == rowptr[row + 1]) continue;
      float* to = out + row * width;
      int64_t* place = arg + row * width;
      std::fill_n(to, width, -__builtin_inff());
      for (int64_t e = rowptr[row]; e < rowptr[row + 1]; ++e) {
        const float* from = x + col[e] * width;
        for (int64_t j = 0; j < width; ++j) {
          const float value = values[e] * from[j];
          if (to[j] < value || value != value) {
            to[j] = value;
            place[j] = e;
            asm volatile("" : : : "memory");  // as there: a branch and two stores, not a vector of selects
          }
        }
      }
    }
  });
}

void torch_shaped_max_backward(const int64_t* col, const float* values, const float* grad, const int64_t* arg, int64_t edges,
                               int64_t rows, int64_t num_src, int64_t width, float* x_grad) {
  std::vector<float> scaled(size_t(rows * width), 0.0f);
  std::vector<int64_t> place(size_t(rows * width), 0);
  float* to = scaled.data();
  int64_t* to_place = place.data();
  parallel_for(rows, 1, [=](int64_t first, int64_t last) {
    for (int64_t i = first * width; i < last * width; ++i) {
      if (arg[i] == edges) continue;
      to_place[i] = col[arg[i]];
      to[i] = values[arg[i]] * grad[i];
    }
  });
  std::fill_n(x_grad, num_src * width, 0.0f);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t j = 0; j < width; ++j) x_grad[to_place[row * width + j] * width + j] += to[row * width + j];
}

void torch_shaped_sum_backward(const int64_t* rowptr, const int64_t* col, const float* values, const float* grad,
                               int64_t rows, int64_t num_src, int64_t width, float* x_grad) {
  const int64_t edges = rowptr[rows];
  std::vector<int64_t> back(size_t(num_src) + 1), back_col(static_cast<size_t>(edges));
  std::vector<float> back_values(static_cast<size_t>(edges));
  for (int64_t e = 0; e < edges; ++e) ++back[size_t(col[e]) + 1];
  for (int64_t s = 0; s < num_src; ++s) back[size_t(s) + 1] += back[size_t(s)];
  std::vector<int64_t> next(back.begin(), back.end() - 1);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t e = rowptr[row]; e < rowptr[row + 1]; ++e) {
      const int64_t to = next[size_t(col[e])]++;
      back_col[size_t(to)] = row;
      back_values[size_t(to)] = values[e];
    }
  torch_shaped_spmm(back.data(), back_col.data(), back_values.data(), grad, num_src, width, x_grad);
}

void plain_heads(const int64_t* rowptr, const int64_t* col, const float* weight, const float* x, int64_t rows, int64_t heads,
                 int64_t columns, float* out) {
  const int64_t width = heads * columns;
  parallel_for(rows, 64, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      float* to = out + row * width;
      std::fill_n(to, width, 0.0f);
      for (int64_t e = rowptr[row]; e < rowptr[row + 1]; ++e)
        for (int64_t h = 0; h < heads; ++h) {
          const float factor = weight[e * heads + h];
          const float* from = x + col[e] * width + h * columns;
          for (int64_t c = 0; c < columns; ++c) to[h * columns + c] += factor * from[c];
        }
    }
  });
}

void torch_shaped_sddmm(const int64_t* row, const int64_t* col, const float* a, const float* b, int64_t count, int64_t width,
                        float* out) {
  parallel_for(count, 1 << 12, [=](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const float* x = a + row[e] * width;
      const float* y = b + col[e] * width;
      Vec sum[2] = {};
      int64_t j = 0;
      for (; j + 2 * kLanes <= width; j += 2 * kLanes)
        for (int v = 0; v < 2; ++v)
          sum[v] += *reinterpret_cast<const Vec*>(x + j + v * kLanes) * *reinterpret_cast<const Vec*>(y + j + v * kLanes);
      sum[0] += sum[1];
      float total = 0;
      for (int l = 0; l < kLanes; ++l) total += sum[0][l];
      for (; j < width; ++j) total += x[j] * y[j];
      out[e] = total;
    }
  });
}

void plain_rows(const int32_t* src, const int32_t* dst, int64_t count, int64_t rows, int64_t* rowptr, int32_t* col,
                int64_t* edge_id) {
  std::fill_n(rowptr, rows + 1, int64_t{0});
  for (int64_t e = 0; e < count; ++e) ++rowptr[dst[e] + 1];
  for (int64_t d = 0; d < rows; ++d) rowptr[d + 1] += rowptr[d];
  std::vector<int64_t> next(rowptr, rowptr + rows);
  for (int64_t e = 0; e < count; ++e) {
    const int64_t place = next[size_t(dst[e])]++;
    col[place] = src[e];
    edge_id[place] = e;
  }
}

}  // namespace tessera::bench
