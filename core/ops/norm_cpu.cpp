// Normalisation of rows in two passes (mean, then the distances from it): exact also where the mean is large beside the
// spread. A row's sums are short ones in its own type, added up in double; sums over rows go through blocks of a constant
// number of rows, in double, joined in a fixed order.
//
// Channels are read once for mean and variance: a few rows at a time have their own of both, which are joined (Chan, Golub
// and LeVeque, 1979). Of n such rows the distances are taken from p, the mean of the first kPivotRows, and M2 = sum (x -
// p)^2 - (sum (x - p))^2 / n. Those first rows alone contribute kPivotRows (p - mean)^2 to M2, so what is subtracted is at
// most n / kPivotRows times what is left, whatever the numbers are.

#include "tessera/core/ops/norm_kernels.h"

#include "tessera/core/ops/doubles_kernels.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 14;

constexpr int kWide = simd::kLanes<double>;

template <class F>
TESSERA_INLINE double row_sum(int64_t count, F f) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int l = 0; l < 8; ++l) lane[l] += f(i + l);
  for (int l = 0; i < count; ++i, ++l) lane[l] += f(i);
  return tree_sum(lane, 8);
}

constexpr int64_t kPiece = 512;  // elements that are added up in their own type before they go to a double

/// Two sums over a row. `term(j, lanes, a, b)` adds elements [j, j + lanes) to a and b: vectors of as many lanes, or single
/// elements. Short pieces in the row's own type, pieces in double.
template <class T, class F>
TESSERA_INLINE void row_sums_of(int64_t width, double* first, double* second, F term) {
  constexpr int L = simd::kLanes<T>;
  using V = simd::Vec<T, L>;
  double a = 0, b = 0;
  int64_t j = 0;
  while (j + 2 * L <= width) {
    V of_a[2] = {}, of_b[2] = {};
    const int64_t last = j + kPiece < width ? j + kPiece : width;
    for (; j + 2 * L <= last; j += 2 * L) {
      term.template operator()<V>(j, of_a[0], of_b[0]);
      term.template operator()<V>(j + L, of_a[1], of_b[1]);
    }
    T lanes_a[L], lanes_b[L];
    simd::store<L>(lanes_a, of_a[0] + of_a[1]);
    simd::store<L>(lanes_b, of_b[0] + of_b[1]);
    double wide_a[L], wide_b[L];
    for (int l = 0; l < L; ++l) {
      wide_a[l] = double(lanes_a[l]);
      wide_b[l] = double(lanes_b[l]);
    }
    a += tree_sum(wide_a, L);
    b += tree_sum(wide_b, L);
  }
  T rest_a = 0, rest_b = 0;
  for (; j < width; ++j) term.template operator()<T>(j, rest_a, rest_b);
  *first = a + double(rest_a);
  *second = b + double(rest_b);
}

template <class V, class T>
TESSERA_INLINE V elements(const T* p) {
  if constexpr (__is_same(V, T))
    return *p;
  else
    return simd::load<simd::kLanes<T>>(p);
}

/// The sums of blocks, `count` each, in a fixed tree. Overwrites them.
TESSERA_INLINE void join_blocks(double* partials, int64_t blocks, int64_t count, double* out) {
  for (int64_t step = 1; step < blocks; step *= 2)
    for (int64_t b = 0; b + step < blocks; b += 2 * step)
      for (int64_t c = 0; c < count; ++c) partials[b * count + c] += partials[(b + step) * count + c];
  for (int64_t c = 0; c < count; ++c) out[c] = blocks > 0 ? partials[c] : 0;
}

/// The share of kRows rows, four of which meet in registers, in their own type, before they go to doubles in memory.
template <int kRows, class T>
TESSERA_INLINE void add_rows(const T* x, const T* g, const double* moments, int64_t width, double* grads, double* products) {
  constexpr int L = simd::kLanes<T>;
  using V = simd::Vec<T, L>;
  T mean[kRows], inverse[kRows];
  for (int r = 0; r < kRows; ++r) {
    mean[r] = T(moments[2 * r]);
    inverse[r] = T(moments[2 * r + 1]);
  }
  int64_t c = 0;
  for (; c + L <= width; c += L) {
    V sum{}, product{};
    for (int r = 0; r < kRows; ++r) {
      const V grad = simd::load<L>(g + r * width + c);
      sum += grad;
      product += grad * ((simd::load<L>(x + r * width + c) - mean[r]) * inverse[r]);
    }
    T of_sum[L], of_product[L];
    simd::store<L>(of_sum, sum);
    simd::store<L>(of_product, product);
    for (int l = 0; l < L; l += kWide) {
      simd::store<kWide>(grads + c + l, simd::load<kWide>(grads + c + l) + simd::load_doubles(of_sum + l));
      simd::store<kWide>(products + c + l, simd::load<kWide>(products + c + l) + simd::load_doubles(of_product + l));
    }
  }
  for (; c < width; ++c)
    for (int r = 0; r < kRows; ++r) {
      const double grad = double(g[r * width + c]);
      grads[c] += grad;
      products[c] += grad * ((double(x[r * width + c]) - moments[2 * r]) * moments[2 * r + 1]);
    }
}

/// inverse (h - mean(h) - xhat mean(h xhat)) of a row, h = g weight and xhat = (x - mean) inverse. What rounding the mean
/// to T does to the second sum is known from the first, and undone.
template <class T, bool kWeighted>
TESSERA_INLINE void row_gradient(const T* x, const T* g, const T* weight, int64_t width, double mean, double inverse,
                                 double share, T* out) {
  const T m = T(mean);
  double c1, c2;
  row_sums_of<T>(
      width, &c1, &c2, [=]<class V>(int64_t j, V & plain, V & product) __attribute__((always_inline)) {
        V h = elements<V>(g + j);
        if constexpr (kWeighted) h *= elements<V>(weight + j);
        plain += h;
        product += h * (elements<V>(x + j) - m);
      });
  c2 += (double(m) - mean) * c1;
  c1 *= share * inverse;
  c2 *= share * inverse * inverse * inverse;
  const T of_h = T(inverse), constant = T(c1), of_x = T(c2);
  for (int64_t j = 0; j < width; ++j) out[j] = (kWeighted ? g[j] * weight[j] : g[j]) * of_h - constant - (x[j] - m) * of_x;
}

template <class T>
void layer_norm(const LayerNormKernel::Args& k) {
  const T* all = static_cast<const T*>(k.x);
  const T* weight = static_cast<const T*>(k.weight);
  const T* bias = static_cast<const T*>(k.bias);
  T* outs = static_cast<T*>(k.out);
  double* moments = k.moments;
  const int64_t width = k.width;
  const double eps = k.eps, share = width == 0 ? 0 : 1 / double(width);
  parallel_for(k.rows, kGrain / (width + 16) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = all + i * width;
      T* out = outs + i * width;
      double sum, square, unused;
      row_sums_of<T>(
          width, &sum,
          &unused, [=]<class V>(int64_t j, V & a, V&) __attribute__((always_inline)) { a += elements<V>(x + j); });
      // Distances from about the mean: their own mean says how far off it was.
      const T about = T(sum * share);
      row_sums_of<T>(
          width, &sum, &square, [=]<class V>(int64_t j, V & a, V & b) __attribute__((always_inline)) {
            const V d = elements<V>(x + j) - about;
            a += d;
            b += d * d;
          });
      const double off = sum * share, mean = double(about) + off, variance = square * share - off * off;
      const double inverse = 1 / simd::sqrt((variance < 0 ? 0 : variance) + eps);
      moments[2 * i] = mean;
      moments[2 * i + 1] = inverse;
      const T m = T(mean), s = T(inverse);
      for (int64_t j = 0; j < width; ++j) {
        const T y = (x[j] - m) * s;
        out[j] = y * (weight ? weight[j] : T(1)) + (bias ? bias[j] : T(0));
      }
    }
  });
}

/// Gradients of x and of the parameters from one reading of x and grad: kRows rows at a time, which are in the first-level
/// cache when the second of the two comes to them.
template <int kRows, class T>
TESSERA_INLINE void gradient_of_rows(const LayerNormKernel::Args& k, int64_t row, double* sums) {
  const int64_t width = k.width;
  const T* x = static_cast<const T*>(k.x) + row * width;
  const T* g = static_cast<const T*>(k.grad) + row * width;
  const T* weight = static_cast<const T*>(k.weight);
  const double *moments = k.moments + 2 * row, share = width == 0 ? 0 : 1 / double(width);
  if (k.out != nullptr)
    for (int r = 0; r < kRows; ++r) {
      const double mean = moments[2 * r], inverse = moments[2 * r + 1];
      T* out = static_cast<T*>(k.out) + (row + r) * width;
      weight != nullptr ? row_gradient<T, true>(x + r * width, g + r * width, weight, width, mean, inverse, share, out)
                        : row_gradient<T, false>(x + r * width, g + r * width, weight, width, mean, inverse, share, out);
    }
  if (sums != nullptr) add_rows<kRows>(x, g, moments, width, sums, sums + width);
}

template <class T>
void layer_norm_gradient(const LayerNormKernel::Args& k) {
  constexpr int64_t kBlock = LayerNormKernel::kBlock;
  const int64_t rows = k.rows, width = k.width, blocks = LayerNormKernel::blocks_of(rows);
  parallel_for(blocks, kGrain / (kBlock * (width + 16)) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double* sums = k.sums != nullptr ? k.partials + b * 2 * width : nullptr;
      if (sums != nullptr)
        for (int64_t c = 0; c < 2 * width; ++c) sums[c] = 0;
      const int64_t last = (b + 1) * kBlock < rows ? (b + 1) * kBlock : rows;
      int64_t i = b * kBlock;
      for (; i + 4 <= last; i += 4) gradient_of_rows<4, T>(k, i, sums);
      for (; i < last; ++i) gradient_of_rows<1, T>(k, i, sums);
    }
  });
  if (k.sums != nullptr) join_blocks(k.partials, blocks, 2 * width, k.sums);
}

constexpr int64_t kShort = 16;  // rows that are added up in their own type before they go to a double
constexpr int64_t kPivotRows = 4;

/// f<V, K>(c) for groups of K vectors of columns, a cache line of f32 on AVX2, then for single vectors and single columns.
template <class T, class F>
TESSERA_INLINE void column_groups(int64_t width, F f) {
  constexpr int L = simd::kLanes<T>;
  using V = simd::Vec<T, L>;
  int64_t c = 0;
  for (; c + 2 * L <= width; c += 2 * L) f.template operator()<V, 2>(c);
  for (; c + L <= width; c += L) f.template operator()<V, 1>(c);
  for (; c < width; ++c) f.template operator()<T, 1>(c);
}

template <class V, class T>
TESSERA_INLINE void put(T* to, V value) {
  if constexpr (__is_same(V, T))
    *to = value;
  else
    simd::store<simd::kLanes<T>>(to, value);
}

template <class T, class V>
TESSERA_INLINE void add_to_doubles(double* to, V value) {
  constexpr int64_t lanes = sizeof(V) / sizeof(T);
  T single[lanes];
  put<V>(single, value);
  for (int64_t l = 0; l < lanes; ++l) to[l] += double(single[l]);
}

/// Sum and squared distances from their mean of each column of a block.
template <class T>
TESSERA_INLINE void block_moments(const T* x, int64_t rows, int64_t width, double* sum, double* squares) {
  for (int64_t first = 0; first < rows; first += kShort) {
    const int64_t count = first + kShort < rows ? kShort : rows - first, pivots = count < kPivotRows ? count : kPivotRows;
    const double share = 1 / double(count), share_before = first == 0 ? 0 : 1 / double(first),
                 weight = double(first) * double(count) / double(first + count);
    column_groups<T>(
        width, [=]<class V, int K>(int64_t c) __attribute__((always_inline)) {
          constexpr int64_t lanes = sizeof(V) / sizeof(T);
          const T* from = x + first * width + c;
          V pivot[K] = {}, plain[K] = {}, square[K] = {};
          for (int64_t r = 0; r < pivots; ++r)
            for (int v = 0; v < K; ++v) pivot[v] += elements<V>(from + r * width + v * lanes);
          for (int v = 0; v < K; ++v) pivot[v] *= T(1) / T(pivots);
          for (int64_t r = 0; r < count; ++r)
            for (int v = 0; v < K; ++v) {
              const V d = elements<V>(from + r * width + v * lanes) - pivot[v];
              plain[v] += d;
              square[v] += d * d;
            }
          T about[K * lanes], off[K * lanes], of_square[K * lanes];
          for (int v = 0; v < K; ++v) {
            put<V>(about + v * lanes, pivot[v]);
            put<V>(off + v * lanes, plain[v]);
            put<V>(of_square + v * lanes, square[v]);
          }
          for (int64_t l = 0; l < K * lanes; ++l) {
            const double d = double(off[l]), left = double(of_square[l]) - d * d * share;
            const double here = double(about[l]) * double(count) + d;
            const double before = first == 0 ? 0 : sum[c + l], apart = here * share - before * share_before;
            sum[c + l] = before + here;
            squares[c + l] = (first == 0 ? 0 : squares[c + l]) + (left < 0 ? 0 : left) + apart * apart * weight;
          }
        });
  }
}

/// The same where a channel's numbers lie in runs of `inner`, which are in the cache for the second pass.
template <class T>
TESSERA_INLINE void block_moments(const T* x, int64_t rows, int64_t channels, int64_t inner, double* sum, double* squares) {
  for (int64_t c = 0; c < channels; ++c) {
    double plain = 0, square = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const T* run = x + (r * channels + c) * inner;
      plain += row_sum(inner, [=](int64_t j) { return double(run[j]); });
    }
    const double mean = plain / double(rows * inner);
    for (int64_t r = 0; r < rows; ++r) {
      const T* run = x + (r * channels + c) * inner;
      square += row_sum(inner, [=](int64_t j) {
        const double d = double(run[j]) - mean;
        return d * d;
      });
    }
    sum[c] = plain;
    squares[c] = square;
  }
}

/// Sums of grad and of grad (x - mean) for each column of a block, the mean rounded to T.
template <class T>
TESSERA_INLINE void block_gradients(const T* x, const T* g, const double* mean, int64_t rows, int64_t width, double* grads,
                                    double* products) {
  for (int64_t c = 0; c < width; ++c) grads[c] = products[c] = 0;
  for (int64_t first = 0; first < rows; first += kShort) {
    const int64_t count = first + kShort < rows ? kShort : rows - first;
    column_groups<T>(
        width, [=]<class V, int K>(int64_t c) __attribute__((always_inline)) {
          constexpr int64_t lanes = sizeof(V) / sizeof(T);
          T about[K * lanes];
          for (int64_t l = 0; l < K * lanes; ++l) about[l] = T(mean[c + l]);
          V plain[K] = {}, product[K] = {};
          for (int64_t r = 0; r < count; ++r)
            for (int v = 0; v < K; ++v) {
              const int64_t at = (first + r) * width + c + v * lanes;
              const V grad = elements<V>(g + at);
              plain[v] += grad;
              product[v] += grad * (elements<V>(x + at) - elements<V>(about + v * lanes));
            }
          for (int v = 0; v < K; ++v) {
            add_to_doubles<T>(grads + c + v * lanes, plain[v]);
            add_to_doubles<T>(products + c + v * lanes, product[v]);
          }
        });
  }
}

template <class T>
TESSERA_INLINE void block_gradients(const T* x, const T* g, const double* mean, int64_t rows, int64_t channels,
                                    int64_t inner, double* grads, double* products) {
  for (int64_t c = 0; c < channels; ++c) {
    const double about = double(T(mean[c]));
    grads[c] = products[c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = (r * channels + c) * inner;
      grads[c] += row_sum(inner, [=](int64_t j) { return double(g[at + j]); });
      products[c] += row_sum(inner, [=](int64_t j) { return double(g[at + j]) * (double(x[at + j]) - about); });
    }
  }
}

/// Means and squared distances of all rows from those of the blocks.
TESSERA_INLINE void join_moments(const ChannelSumsKernel::Args& k, int64_t block, int64_t blocks) {
  const int64_t channels = k.channels;
  double *mean = k.out, *squares = k.out + channels;
  for (int64_t c = 0; c < 2 * channels; ++c) k.out[c] = 0;
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t c = 0; c < channels; ++c) mean[c] += k.partials[2 * b * channels + c];
  for (int64_t c = 0; c < channels; ++c) mean[c] /= double(k.rows * k.inner);
  for (int64_t b = 0; b < blocks; ++b) {
    const double* sum = k.partials + 2 * b * channels;
    const double count = double(((b + 1) * block < k.rows ? block : k.rows - b * block) * k.inner), share = 1 / count;
    for (int64_t c = 0; c < channels; ++c) {
      const double off = sum[c] * share - mean[c];
      squares[c] += sum[channels + c] + count * off * off;
    }
  }
}

template <class T>
void channel_sums(const ChannelSumsKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* g = static_cast<const T*>(k.grad);
  const int64_t rows = k.rows, channels = k.channels, inner = k.inner, block = ChannelSumsKernel::rows_of(inner),
                blocks = ChannelSumsKernel::blocks_of(rows, inner);
  const bool moments = k.op == ChannelSumsKernel::Op::moments;
  parallel_for(blocks, kGrain / (block * channels * inner + 1) + 1,
               [=, partials = k.partials, mean = k.moments](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t first = b * block, count = first + block < rows ? block : rows - first,
                                 at = first * channels * inner;
                   double *to = partials + 2 * b * channels, *second = to + channels;
                   if (moments && inner == 1)
                     block_moments(x + at, count, channels, to, second);
                   else if (moments)
                     block_moments(x + at, count, channels, inner, to, second);
                   else if (inner == 1)
                     block_gradients(x + at, g + at, mean, count, channels, to, second);
                   else
                     block_gradients(x + at, g + at, mean, count, channels, inner, to, second);
                 }
               });
  if (moments) return join_moments(k, block, blocks);
  join_blocks(k.partials, blocks, 2 * channels, k.out);
  for (int64_t c = 0; c < channels; ++c) {
    const double mean = k.moments[c], off = double(T(mean)) - mean;
    k.out[channels + c] = (k.out[channels + c] + off * k.out[c]) * k.moments[channels + c];
  }
}

/// Rows where a channel is a column: the coefficients of some columns stay in registers for a few rows.
template <bool kGrad, class T>
TESSERA_INLINE void map_columns(const T* x, const T* g, const T* coefficients, int64_t rows, int64_t width, T* out) {
  column_groups<T>(
      width, [=]<class V, int K>(int64_t c) __attribute__((always_inline)) {
        constexpr int64_t lanes = sizeof(V) / sizeof(T);
        V centre[K], of_x[K], offset[K], of_grad[K];
        for (int v = 0; v < K; ++v) {
          const T* from = coefficients + c + v * lanes;
          centre[v] = elements<V>(from);
          of_x[v] = elements<V>(from + width);
          offset[v] = elements<V>(from + 2 * width);
          of_grad[v] = elements<V>(from + 3 * width);
        }
        for (int64_t r = 0; r < rows; ++r)
          for (int v = 0; v < K; ++v) {
            const int64_t at = r * width + c + v * lanes;
            V rest = offset[v];
            if constexpr (kGrad) rest += elements<V>(g + at) * of_grad[v];
            put<V>(out + at, (elements<V>(x + at) - centre[v]) * of_x[v] + rest);
          }
      });
}

template <class T>
void channel_map(const ChannelMapKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* g = static_cast<const T*>(k.grad);
  const int64_t rows = k.rows, channels = k.channels, inner = k.inner;
  const T* centre = static_cast<const T*>(k.coefficients);
  T* out = static_cast<T*>(k.out);
  if (inner == 1) {
    const int64_t block = channels <= 128 ? 8 : 1;  // long rows: one after the other was measured faster
    parallel_for((rows + block - 1) / block, kGrain / (block * channels + 1) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t first = b * block, count = first + block < rows ? block : rows - first, at = first * channels;
        g == nullptr ? map_columns<false>(x + at, g, centre, count, channels, out + at)
                     : map_columns<true>(x + at, g + at, centre, count, channels, out + at);
      }
    });
    return;
  }
  const T *of_x = centre + channels, *offset = of_x + channels, *of_grad = offset + channels;
  parallel_for(rows, kGrain / (channels * inner + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t c = 0; c < channels; ++c) {
        const T m = centre[c], a = of_x[c], d = offset[c], b = of_grad[c];
        const int64_t at = (i * channels + c) * inner;
        if (g == nullptr)
          for (int64_t j = at; j < at + inner; ++j) out[j] = (x[j] - m) * a + d;
        else
          for (int64_t j = at; j < at + inner; ++j) out[j] = (x[j] - m) * a + (g[j] * b + d);
      }
  });
}

}  // namespace

template <Isa>
void LayerNormKernel::cpu(const Args& args) {
  if (args.grad == nullptr)
    args.is_double ? layer_norm<double>(args) : layer_norm<float>(args);
  else
    args.is_double ? layer_norm_gradient<double>(args) : layer_norm_gradient<float>(args);
}
template void LayerNormKernel::cpu<kIsa>(const Args&);

template <Isa>
void ChannelSumsKernel::cpu(const Args& args) {
  args.is_double ? channel_sums<double>(args) : channel_sums<float>(args);
}
template void ChannelSumsKernel::cpu<kIsa>(const Args&);

template <Isa>
void ChannelMapKernel::cpu(const Args& args) {
  args.is_double ? channel_map<double>(args) : channel_map<float>(args);
}
template void ChannelMapKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
