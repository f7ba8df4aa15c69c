// Normalisation in two passes (mean, then the distances from it): exact also where the mean is large beside the spread. A
// row's sums are short ones in its own type, added up in double; sums over rows go through blocks of a constant number of
// rows, in double, joined in a fixed tree.

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

/// The terms of one element: what is added to the channel's first and second sum.
template <class T, class F>
TESSERA_INLINE void sums(const ChannelSumsKernel::Args& k, bool second, F term) {
  const int64_t rows = k.rows, channels = k.channels, inner = k.inner, block = ChannelSumsKernel::rows_of(inner),
                blocks = ChannelSumsKernel::blocks_of(rows, inner);
  double* partials = k.partials;
  parallel_for(blocks, kGrain / (block * channels * inner + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double* to = partials + b * channels * 2;
      for (int64_t c = 0; c < 2 * channels; ++c) to[c] = 0;
      const int64_t last = (b + 1) * block < rows ? (b + 1) * block : rows;
      for (int64_t i = b * block; i < last; ++i) {
        const int64_t row = i * channels * inner;
        if (inner == 1) {
          for (int64_t c = 0; c < channels; ++c) to[c] += term(row + c, i, c, 0);
          if (second)
            for (int64_t c = 0; c < channels; ++c) to[channels + c] += term(row + c, i, c, 1);
          continue;
        }
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at = row + c * inner;
          to[c] += row_sum(inner, [=](int64_t j) { return term(at + j, i, c, 0); });
          if (second) to[channels + c] += row_sum(inner, [=](int64_t j) { return term(at + j, i, c, 1); });
        }
      }
    }
  });
  join_blocks(partials, blocks, 2 * channels, k.out);
}

template <class T>
void channel_sums(const ChannelSumsKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* g = static_cast<const T*>(k.grad);
  const double* moments = k.moments;
  const int64_t channels = k.channels;
  switch (k.op) {
    case ChannelSumsKernel::Op::sum:
      return sums<T>(k, false, [=](int64_t at, int64_t, int64_t, int) { return double(x[at]); });
    case ChannelSumsKernel::Op::square:
      return sums<T>(k, false, [=](int64_t at, int64_t, int64_t c, int) {
        const double d = double(x[at]) - moments[c];
        return d * d;
      });
    case ChannelSumsKernel::Op::gradients:
      return sums<T>(k, true, [=](int64_t at, int64_t, int64_t c, int which) {
        return which == 0 ? double(g[at]) : double(g[at]) * (double(x[at]) - moments[c]) * moments[channels + c];
      });
  }
}

template <class T>
void channel_map(const ChannelMapKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* g = static_cast<const T*>(k.grad);
  const int64_t channels = k.channels, inner = k.inner;
  const T* centre = static_cast<const T*>(k.coefficients);
  const T *of_x = centre + channels, *offset = of_x + channels, *of_grad = offset + channels;
  T* out = static_cast<T*>(k.out);
  parallel_for(k.rows, kGrain / (channels * inner + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i * channels * inner;
      if (inner == 1 && g == nullptr) {
        for (int64_t c = 0; c < channels; ++c) out[row + c] = (x[row + c] - centre[c]) * of_x[c] + offset[c];
      } else if (inner == 1) {
        for (int64_t c = 0; c < channels; ++c)
          out[row + c] = (x[row + c] - centre[c]) * of_x[c] + (g[row + c] * of_grad[c] + offset[c]);
      } else {
        for (int64_t c = 0; c < channels; ++c) {
          const T m = centre[c], a = of_x[c], d = offset[c], b = of_grad[c];
          const int64_t at = row + c * inner;
          if (g == nullptr)
            for (int64_t j = at; j < at + inner; ++j) out[j] = (x[j] - m) * a + d;
          else
            for (int64_t j = at; j < at + inner; ++j) out[j] = (x[j] - m) * a + (g[j] * b + d);
        }
      }
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
