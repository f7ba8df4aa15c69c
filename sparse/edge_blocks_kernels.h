#pragma once

#include "tessera/core/simd.h"

/// What kernels do with a block of a row's edges that are taken together: sums and products over heads and channels, of
/// rows that lie anywhere. For kernel files. Numbers of edges come as [edge][head], rows are [head][channel].
namespace tessera {
namespace edge_blocks {
inline namespace TESSERA_TARGET_ISA {

template <class T>
constexpr T kInfinity = T(__builtin_inf());

template <int L, class T>
TESSERA_INLINE simd::Vec<T, L> get(const T* p) {
  return simd::load<L>(p);
}
template <int L, class T>
TESSERA_INLINE void put(T* p, simd::Vec<T, L> v) {
  simd::store<L>(p, v);
}

/// Calls f<lanes>(column) for columns [c, count): full vectors, then halves, quarters, ...
template <class T, int L = simd::kLanes<T>, class F>
TESSERA_INLINE void for_columns(int64_t c, int64_t count, const F& f) {
  for (; c + L <= count; c += L) f.template operator()<L>(c);
  if constexpr (L > 1)
    if (c < count) for_columns<T, L / 2>(c, count, f);
}

template <class T, int L>
TESSERA_INLINE T sum_lanes(simd::Vec<T, L> v) {
  if constexpr (L == 16) {
    return sum_lanes<T, 8>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                           __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  } else if constexpr (L == 8) {
    return sum_lanes<T, 4>(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
  } else if constexpr (L == 4) {
    return (v[0] + v[1]) + (v[2] + v[3]);
  } else {
    return v[0] + v[1];
  }
}

/// The four sums of four vectors, each added in the same order as the others.
template <class T, int L>
TESSERA_INLINE void sum_four(const simd::Vec<T, L>* v, T* sums) {
  if constexpr (L == 16) {
    simd::Vec<T, 8> half[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      half[i] = __builtin_shufflevector(v[i], v[i], 0, 1, 2, 3, 4, 5, 6, 7) +
                __builtin_shufflevector(v[i], v[i], 8, 9, 10, 11, 12, 13, 14, 15);
    sum_four<T, 8>(half, sums);
  } else if constexpr (L == 8) {
    simd::Vec<T, 4> half[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      half[i] = __builtin_shufflevector(v[i], v[i], 0, 1, 2, 3) + __builtin_shufflevector(v[i], v[i], 4, 5, 6, 7);
    sum_four<T, 4>(half, sums);
  } else if constexpr (L == 4) {
    const simd::Vec<T, 4> a =
        __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6) + __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
    const simd::Vec<T, 4> b =
        __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6) + __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
    simd::store<4>(sums,
                   simd::Vec<T, 4>(__builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7)));
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = sum_lanes<T, L>(v[i]);
  }
}

/// The rows of a block: gathered by node or by edge id, next to each other, or one for all (stride 0).
template <class T>
struct Rows {
  const T* base;
  int64_t stride;
  const int32_t* node = nullptr;
  const int64_t* edge = nullptr;
  TESSERA_INLINE const T* operator[](int64_t i) const {
    return base + (node != nullptr ? int64_t(node[i]) : edge != nullptr ? edge[i] : i) * stride;
  }
};

/// sums[q] = sum over c of f<lanes>(x[q], y[q], z[q], c) for four of each, whose sums across lanes are folded together.
template <class T, int L, class F>
TESSERA_INLINE void four_sums(int64_t channels, const T* const* x, const T* const* y, const T* const* z, const F& f,
                              T* sums) {
  int64_t c = 0;
  if constexpr (L > 1) {
    simd::Vec<T, L> v[4] = {};
    for (; c + L <= channels; c += L)
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) v[q] += f.template operator()<L>(x[q], y[q], z[q], c);
    sum_four<T, L>(v, sums);
  } else {
    for (int q = 0; q < 4; ++q) sums[q] = T(0);
  }
  for (; c < channels; ++c)
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) sums[q] += f.template operator()<1>(x[q], y[q], z[q], c)[0];
}

/// out[i, h] = sum over c of f<lanes>(x, y, z, c), where x, y are head h of a[i] and b[i], z head h of `shared`: four heads
/// of an edge at a time, or four edges of one head; the last four repeat what is left. f gives lanes c, c + 1, ...
template <class T, int L, class F>
TESSERA_INLINE void pair_sums_by(int64_t n, int64_t heads, int64_t channels, Rows<T> a, Rows<T> b, const T* shared,
                                 const F& f, T* out) {
  if constexpr (L > 1)
    if (channels < L) return pair_sums_by<T, L / 2>(n, heads, channels, a, b, shared, f, out);
  if constexpr (L >= 4) {
    if (channels == L && heads % 4 == 0) {  // eight heads of eight and their like: nothing but a vector for each
      for (int64_t i = 0; i < n; ++i) {
        const T *ai = a[i], *bi = b[i];
        for (int64_t h = 0; h < heads; h += 4) {
          simd::Vec<T, L> v[4];
#pragma GCC unroll 4
          for (int q = 0; q < 4; ++q) v[q] = f.template operator()<L>(ai, bi, shared, (h + q) * L);
          sum_four<T, L>(v, out + i * heads + h);
        }
      }
      return;
    }
  }
  const bool by_edge = heads == 1;
  for (int64_t i = 0; i < n; i += by_edge ? 4 : 1) {
    const T *ai = a[i], *bi = b[i];
    for (int64_t h = 0; h < heads; h += 4) {
      const int64_t left = by_edge ? n - i : heads - h, here = left < 4 ? left : 4;
      const T *x[4], *y[4], *z[4];
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) {
        const int64_t k = q < here ? q : here - 1, at = by_edge ? 0 : (h + k) * channels;
        x[q] = (by_edge ? a[i + k] : ai) + at;
        y[q] = (by_edge ? b[i + k] : bi) + at;
        z[q] = shared + at;
      }
      T* to = out + i * heads + h;
      if (here == 4) {
        four_sums<T, L>(channels, x, y, z, f, to);
      } else {
        T sums[4];
        four_sums<T, L>(channels, x, y, z, f, sums);
        for (int64_t q = 0; q < here; ++q) to[q] = sums[q];
      }
    }
  }
}

/// Functions of rows are called, not inlined: each is used several times, and compile time is what they would cost.

/// out[i, h] = factor * sum over c of a[i][h, c] * b[i][h, c]
template <class T>
[[gnu::noinline]] void dots(int64_t n, int64_t heads, int64_t channels, Rows<T> a, Rows<T> b, T factor, T* out) {
  pair_sums_by<T, simd::kLanes<T>>(
      n, heads, channels, a, b, a.base,
      []<int L>(const T* x, const T* y, const T*, int64_t c) { return get<L>(x + c) * get<L>(y + c); }, out);
  for (int64_t j = 0; j < n * heads; ++j) out[j] *= factor;
}

/// out[i, h] = sum over c of att[h, c] * leaky_relu(a[i][h, c] + b[i][h, c])
template <class T>
[[gnu::noinline]] void bent_dots(int64_t n, int64_t heads, int64_t channels, Rows<T> a, Rows<T> b, const T* att, T slope,
                                 T* out) {
  pair_sums_by<T, simd::kLanes<T>>(
      n, heads, channels, a, b, att,
      [slope]<int L>(const T* x, const T* y, const T* z, int64_t c) {
        const simd::Vec<T, L> u = get<L>(x + c) + get<L>(y + c);
        return get<L>(z + c) * (u > simd::Vec<T, L>{} ? u : u * slope);
      },
      out);
}

/// `add_rows` for B vectors of columns from `begin` on, each within one head: the sums stay in registers.
template <int B, class T>
TESSERA_INLINE void add_vectors(int64_t n, int64_t heads, int64_t channels, const T* w, Rows<T> x, int64_t begin, T* sum) {
  constexpr int L = simd::kLanes<T>;
  simd::Vec<T, L> v[B];
  int64_t head[B];
#pragma GCC unroll 8
  for (int b = 0; b < B; ++b) {
    v[b] = get<L>(sum + begin + b * L);
    head[b] = (begin + b * L) / channels;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T *xi = x[i] + begin, *wi = w + i * heads;
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) v[b] += wi[head[b]] * get<L>(xi + b * L);
  }
#pragma GCC unroll 8
  for (int b = 0; b < B; ++b) put<L>(sum + begin + b * L, v[b]);
}

/// sum[h, c] += sum over i of w[i, h] * x[i][h, c]. Where vectors do not fit into heads, four edges at a time, so that a sum
/// is read and written a fourth as often.
template <class T>
[[gnu::noinline]] void add_rows(int64_t n, int64_t heads, int64_t channels, const T* w, Rows<T> x, T* sum) {
  constexpr int L = simd::kLanes<T>;
  const int64_t width = heads * channels;
  if (channels % L == 0 && width % (4 * L) == 0) {
    int64_t c = 0;
    for (; c + 8 * L <= width; c += 8 * L) add_vectors<8>(n, heads, channels, w, x, c, sum);
    if (c < width) add_vectors<4>(n, heads, channels, w, x, c, sum);
    return;
  }
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const T *x0 = x[i], *x1 = x[i + 1], *x2 = x[i + 2], *x3 = x[i + 3], *wi = w + i * heads;
    for (int64_t h = 0; h < heads; ++h) {
      const T w0 = wi[h], w1 = wi[heads + h], w2 = wi[2 * heads + h], w3 = wi[3 * heads + h];
      const int64_t end = (h + 1) * channels;
      for_columns<T>(h * channels, end, [=]<int L>(int64_t c) {
        put<L>(sum + c,
               get<L>(sum + c) + w0 * get<L>(x0 + c) + w1 * get<L>(x1 + c) + w2 * get<L>(x2 + c) + w3 * get<L>(x3 + c));
      });
    }
  }
  for (; i < n; ++i) {
    const T* x0 = x[i];
    for (int64_t h = 0; h < heads; ++h) {
      const T w0 = w[i * heads + h];
      for_columns<T>(h * channels, (h + 1) * channels,
                     [=]<int L>(int64_t c) { put<L>(sum + c, get<L>(sum + c) + w0 * get<L>(x0 + c)); });
    }
  }
}

/// The rows of `x` with the edges' added, in `room`.
template <class T>
[[gnu::noinline]] Rows<T> mixed(int64_t n, int64_t width, Rows<T> x, Rows<T> edge, T* room) {
  for (int64_t i = 0; i < n; ++i) {
    const T *xi = x[i], *ei = edge[i];
    T* to = room + i * width;
    for_columns<T>(0, width, [=]<int L>(int64_t c) { put<L>(to + c, get<L>(xi + c) + get<L>(ei + c)); });
  }
  return {room, width};
}

/// The derivative of leaky_relu: 1 above 0, else the slope.
template <int L, class T>
TESSERA_INLINE simd::Vec<T, L> steepness(simd::Vec<T, L> u, T slope) {
  return u > simd::Vec<T, L>{} ? simd::splat<L>(T(1)) : simd::splat<L>(slope);
}

/// out[h] = join(out[h], x[i, h]) over i.
template <class T, class F>
TESSERA_INLINE void join_edges(int64_t n, int64_t heads, const T* x, T* out, const F& join) {
  if (heads == 1) {
    constexpr int L = simd::kLanes<T>;
    int64_t i = 0;
    if (n >= L) {
      simd::Vec<T, L> v = get<L>(x);
      for (i = L; i + L <= n; i += L) v = join.template operator()<L>(v, get<L>(x + i));
      for (int l = 0; l < L; ++l) out[0] = join.template operator()<1>(simd::Vec<T, 1>{out[0]}, simd::Vec<T, 1>{v[l]})[0];
    }
    for (; i < n; ++i) out[0] = join.template operator()<1>(simd::Vec<T, 1>{out[0]}, simd::Vec<T, 1>{x[i]})[0];
    return;
  }
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, x += 4 * heads)
    for_columns<T>(0, heads, [=]<int L>(int64_t h) {
      const simd::Vec<T, L> front = join.template operator()<L>(get<L>(x + h), get<L>(x + heads + h)),
                            back = join.template operator()<L>(get<L>(x + 2 * heads + h), get<L>(x + 3 * heads + h));
      put<L>(out + h, join.template operator()<L>(get<L>(out + h), join.template operator()<L>(front, back)));
    });
  for (; i < n; ++i, x += heads)
    for_columns<T>(0, heads,
                   [=]<int L>(int64_t h) { put<L>(out + h, join.template operator()<L>(get<L>(out + h), get<L>(x + h))); });
}

template <class T>
[[gnu::noinline]] void largest(int64_t n, int64_t heads, const T* x, T* out) {
  join_edges(n, heads, x, out, []<int L>(simd::Vec<T, L> a, simd::Vec<T, L> b) { return b > a ? b : a; });
}
template <class T>
[[gnu::noinline]] void add_edges(int64_t n, int64_t heads, const T* x, T* out) {
  join_edges(n, heads, x, out, []<int L>(simd::Vec<T, L> a, simd::Vec<T, L> b) { return a + b; });
}

/// A maximum of -inf shifts nothing: what follows it is then exp(-inf) = 0.
template <class T>
TESSERA_INLINE T shift_of(T m) {
  return m == -kInfinity<T> ? T(0) : m;
}

/// x[i, h] = exp(x[i, h] - shift[h])
template <class T>
[[gnu::noinline]] void exponentials(int64_t n, int64_t heads, T* x, const T* shift) {
  for (int64_t i = 0; i < n; ++i) {
    T* xi = x + i * heads;
    for_columns<T>(0, heads, [=]<int L>(int64_t h) { put<L>(xi + h, get<L>(xi + h) - get<L>(shift + h)); });
  }
  for (int64_t j = 0; j < n * heads; ++j) x[j] = simd::exp(x[j]);
}

/// weight[i, h] = exp(score[i, h] - norm[i][h]) * norm[i][heads + h]: the softmax, once its norm is known.
template <class T>
[[gnu::noinline]] void softmax_weights(int64_t n, int64_t heads, const T* score, Rows<T> norm, T* weight) {
  for (int64_t i = 0; i < n; ++i) {
    const T *shift = norm[i], *si = score + i * heads;
    T* wi = weight + i * heads;
    for_columns<T>(0, heads, [=]<int L>(int64_t h) { put<L>(wi + h, get<L>(si + h) - get<L>(shift + h)); });
  }
  for (int64_t j = 0; j < n * heads; ++j) weight[j] = simd::exp(weight[j]);
  for (int64_t i = 0; i < n; ++i) {
    const T* factor = norm[i] + heads;
    T* wi = weight + i * heads;
    for_columns<T>(0, heads, [=]<int L>(int64_t h) { put<L>(wi + h, get<L>(wi + h) * get<L>(factor + h)); });
  }
}

}  // namespace TESSERA_TARGET_ISA
}  // namespace edge_blocks
}  // namespace tessera
