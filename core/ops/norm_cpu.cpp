// Normalisation in two passes (mean, then the distances from it), in double: exact also where the mean is large beside the
// spread. Sums over rows go through blocks of a constant number of rows, joined in a fixed tree.

#include "tessera/core/ops/norm_kernels.h"

#include "tessera/core/parallel.h"
#include "tessera/core/ops/doubles_kernels.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 14;

constexpr int kWide = simd::kLanes<double>;
using D = simd::Vec<double, kWide>;

TESSERA_INLINE double across(D v) {
  double lane[kWide];
  simd::store<kWide>(lane, v);
  return tree_sum(lane, kWide);
}

template <class F>
TESSERA_INLINE double row_sum(int64_t count, F f) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int l = 0; l < 8; ++l) lane[l] += f(i + l);
  for (int l = 0; i < count; ++i, ++l) lane[l] += f(i);
  return tree_sum(lane, 8);
}

/// inverse (h - mean(h) - xhat mean(h xhat)) of a row, h = g weight and xhat = (x - mean) inverse.
template <class T, bool kWeighted>
TESSERA_INLINE void row_gradient(const T* x, const T* g, const T* weight, int64_t width, double mean, double inverse,
                                 double share, T* out) {
  D plain[2] = {}, product[2] = {};
  const auto add = [&](int64_t j, int u) {
    const D h = kWeighted ? simd::load_doubles(g + j) * simd::load_doubles(weight + j) : simd::load_doubles(g + j);
    plain[u] += h;
    product[u] += h * (simd::load_doubles(x + j) - mean);
  };
  int64_t j = 0;
  for (; j + 2 * kWide <= width; j += 2 * kWide) {
    add(j, 0);
    add(j + kWide, 1);
  }
  double c1 = 0, c2 = 0;
  for (; j < width; ++j) {
    const double h = kWeighted ? double(g[j]) * double(weight[j]) : double(g[j]);
    c1 += h;
    c2 += h * (double(x[j]) - mean);
  }
  c1 = (c1 + across(plain[0] + plain[1])) * share * inverse;
  c2 = (c2 + across(product[0] + product[1])) * share * inverse * inverse * inverse;
  const T m = T(mean), of_h = T(inverse), constant = T(c1), of_x = T(c2);
  for (j = 0; j < width; ++j) out[j] = (kWeighted ? g[j] * weight[j] : g[j]) * of_h - constant - (x[j] - m) * of_x;
}

template <class T>
void layer_norm(const LayerNormKernel::Args& k) {
  const T* all = static_cast<const T*>(k.x);
  const T* weight = static_cast<const T*>(k.weight);
  const T* bias = static_cast<const T*>(k.bias);
  const T* grads = static_cast<const T*>(k.grad);
  T* outs = static_cast<T*>(k.out);
  double* moments = k.moments;
  const int64_t width = k.width;
  const double eps = k.eps, share = width == 0 ? 0 : 1 / double(width);
  parallel_for(k.rows, kGrain / (width + 16) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* x = all + i * width;
      T* out = outs + i * width;
      if (grads == nullptr) {
        const double mean = row_sum(width, [=](int64_t j) { return double(x[j]); }) * share;
        const double square =
            row_sum(width, [=](int64_t j) { return (double(x[j]) - mean) * (double(x[j]) - mean); }) * share;
        const double inverse = 1 / simd::sqrt(square + eps);
        moments[2 * i] = mean;
        moments[2 * i + 1] = inverse;
        const T m = T(mean), s = T(inverse);
        for (int64_t j = 0; j < width; ++j) {
          const T y = (x[j] - m) * s;
          out[j] = y * (weight ? weight[j] : T(1)) + (bias ? bias[j] : T(0));
        }
      } else {
        const T* g = grads + i * width;
        const double mean = moments[2 * i], inverse = moments[2 * i + 1];
        weight != nullptr ? row_gradient<T, true>(x, g, weight, width, mean, inverse, share, out)
                          : row_gradient<T, false>(x, g, weight, width, mean, inverse, share, out);
      }
    }
  });
}

/// The blocks' sums in a fixed tree.
TESSERA_INLINE void join_blocks(const ChannelSumsKernel::Args& k, int64_t blocks) {
  const int64_t count = 2 * k.channels;
  for (int64_t step = 1; step < blocks; step *= 2)
    for (int64_t b = 0; b + step < blocks; b += 2 * step)
      for (int64_t c = 0; c < count; ++c) k.partials[b * count + c] += k.partials[(b + step) * count + c];
  for (int64_t c = 0; c < count; ++c) k.out[c] = blocks > 0 ? k.partials[c] : 0;
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
  join_blocks(k, blocks);
}

/// The share of kRows rows, four of which meet in registers before memory is touched.
template <int kRows, class T>
TESSERA_INLINE void add_rows(const T* x, const T* g, const double* moments, int64_t width, double* grads, double* products) {
  int64_t c = 0;
  for (; c + kWide <= width; c += kWide) {
    D sum = simd::load<kWide>(grads + c), product = simd::load<kWide>(products + c);
    for (int r = 0; r < kRows; ++r) {
      const D grad = simd::load_doubles(g + r * width + c);
      sum += grad;
      product += grad * ((simd::load_doubles(x + r * width + c) - moments[2 * r]) * moments[2 * r + 1]);
    }
    simd::store<kWide>(grads + c, sum);
    simd::store<kWide>(products + c, product);
  }
  for (; c < width; ++c)
    for (int r = 0; r < kRows; ++r) {
      const double grad = double(g[r * width + c]);
      grads[c] += grad;
      products[c] += grad * ((double(x[r * width + c]) - moments[2 * r]) * moments[2 * r + 1]);
    }
}

/// Sums of grad and of grad (x - mean) / deviation over rows that have moments of their own.
template <class T>
void row_sums(const ChannelSumsKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* g = static_cast<const T*>(k.grad);
  const double* moments = k.row_moments;
  const int64_t rows = k.rows, width = k.channels, block = ChannelSumsKernel::rows_of(1),
                blocks = ChannelSumsKernel::blocks_of(rows, 1);
  double* partials = k.partials;
  parallel_for(blocks, kGrain / (block * width + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double* grads = partials + b * width * 2;
      double* products = grads + width;
      for (int64_t c = 0; c < 2 * width; ++c) grads[c] = 0;
      const int64_t last = (b + 1) * block < rows ? (b + 1) * block : rows;
      int64_t i = b * block;
      for (; i + 4 <= last; i += 4) add_rows<4>(x + i * width, g + i * width, moments + 2 * i, width, grads, products);
      for (; i < last; ++i) add_rows<1>(x + i * width, g + i * width, moments + 2 * i, width, grads, products);
    }
  });
  join_blocks(k, blocks);
}

template <class T>
void channel_sums(const ChannelSumsKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* g = static_cast<const T*>(k.grad);
  const double* moments = k.moments;
  const double* row_moments = k.row_moments;
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
      if (row_moments != nullptr) return row_sums<T>(k);
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
  args.is_double ? layer_norm<double>(args) : layer_norm<float>(args);
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
