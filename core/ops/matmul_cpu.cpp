// Our own matrix product, for doubles (oneDNN has none) and small floats: panels of op(B) and blocks of op(A) are packed so
// that the inner loop reads both forwards, and a register tile of kRows x 2 vectors gathers the products (Goto and van de
// Geijn, 2008). K runs in blocks of kDepth, in order, so the bits depend on the shape alone.

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int kRows = 6;
constexpr int64_t kDepth = 128;
template <class T>
inline constexpr int kLane = simd::kLanes<T>;
template <class T>
inline constexpr int kCols = 2 * kLane<T>;

/// Rows k0.. of op(B), columns j0.. as kDepth x kCols, zero beyond the matrix.
template <class T>
void pack_b(const GemmArgs& g, int64_t k0, int64_t depth, int64_t j0, T* to) {
  constexpr int kWidth = kCols<T>;
  const T* b = static_cast<const T*>(g.b);
  const int64_t columns = g.n - j0 < kWidth ? g.n - j0 : kWidth;
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t row = k0 + k;
    if (g.transpose_b)
      for (int64_t j = 0; j < columns; ++j) to[k * kWidth + j] = b[(j0 + j) * g.ldb + row];
    else
      for (int64_t j = 0; j < columns; ++j) to[k * kWidth + j] = b[row * g.ldb + j0 + j];
    for (int64_t j = columns; j < kWidth; ++j) to[k * kWidth + j] = T(0);
  }
}

template <class T>
void pack_a(const GemmArgs& g, int64_t i0, int64_t k0, int64_t depth, T* to) {
  const T* a = static_cast<const T*>(g.a);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t row = i0 + i, column = k0 + k;
      to[k * kRows + i] = row >= g.m ? T(0) : g.transpose_a ? a[column * g.lda + row] : a[row * g.lda + column];
    }
}

template <class T>
void tile(const GemmArgs& g, int64_t i0, int64_t j0, int64_t depth, const T* a, const T* b, bool first) {
  constexpr int kN = kLane<T>, kWidth = kCols<T>;
  using V = simd::Vec<T, kN>;
  V sum[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const V b0 = simd::load<kN>(b + k * kWidth), b1 = simd::load<kN>(b + k * kWidth + kN);
    for (int i = 0; i < kRows; ++i) {
      const V x = simd::splat<kN>(a[k * kRows + i]);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  T* c = static_cast<T*>(g.c);
  const int64_t rows = g.m - i0 < kRows ? g.m - i0 : kRows, columns = g.n - j0 < kWidth ? g.n - j0 : kWidth;
  T out[kWidth];
  for (int64_t i = 0; i < rows; ++i) {
    simd::store<kN>(out, sum[i][0]);
    simd::store<kN>(out + kN, sum[i][1]);
    T* row = c + (i0 + i) * g.ldc + j0;
    for (int64_t j = 0; j < columns; ++j) row[j] = first ? out[j] : row[j] + out[j];
  }
}

template <class T>
void multiply(const GemmArgs& g) {
  alignas(64) T a[kDepth * kRows], b[kDepth * kCols<T>];
  for (int64_t j0 = 0; j0 < g.n; j0 += kCols<T>)
    for (int64_t k0 = 0; k0 < g.k; k0 += kDepth) {
      const int64_t depth = g.k - k0 < kDepth ? g.k - k0 : kDepth;
      pack_b(g, k0, depth, j0, b);
      for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
        pack_a(g, i0, k0, depth, a);
        tile(g, i0, j0, depth, a, b, k0 == 0);
      }
    }
}

template <class T, class F>
TESSERA_INLINE void each(const EpilogueKernel::Args& k, F f) {
  T* c = static_cast<T*>(k.c);
  const T* bias = static_cast<const T*>(k.bias);
  const int64_t width = k.width;
  if (bias == nullptr) {
    for (int64_t i = 0; i < k.rows * width; ++i) c[i] = f(c[i]);
    return;
  }
  for (int64_t i = 0; i < k.rows; ++i)
    for (int64_t j = 0; j < width; ++j) c[i * width + j] = f(c[i * width + j] + bias[j]);
}

template <class T>
void finish(const EpilogueKernel::Args& k) {
  switch (k.activation) {
    case Activation::none: return each<T>(k, [](T x) { return x; });
    case Activation::relu: return each<T>(k, [](T x) { return x < T(0) ? T(0) : x; });
    case Activation::elu: return each<T>(k, [](T x) { return (x > T(0) ? x : T(0)) + simd::expm1(x > T(0) ? T(0) : x); });
    case Activation::tanh: return each<T>(k, [](T x) { return simd::tanh(x); });
    case Activation::sigmoid: return each<T>(k, [](T x) { return simd::sigmoid(x); });
  }
}

}  // namespace

template <Isa>
void GemmKernel::cpu(const Args& args) {
  args.is_double ? multiply<double>(args) : multiply<float>(args);
}
template void GemmKernel::cpu<kIsa>(const Args&);

template <Isa>
void EpilogueKernel::cpu(const Args& args) {
  args.is_double ? finish<double>(args) : finish<float>(args);
}
template void EpilogueKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
