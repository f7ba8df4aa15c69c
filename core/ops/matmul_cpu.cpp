// Double-precision matrix product (oneDNN has none): panels of op(B) and blocks of op(A) are packed so that the inner
// loop reads both forwards, and a register tile of kRows x 2 vectors gathers the products (Goto and van de Geijn, 2008).
// K runs in blocks of kDepth, in order, so the bits depend on the shape alone.

#include "tessera/core/ops/matmul_kernels.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int kRows = 6;
constexpr int kLane = simd::kLanes<double>;
constexpr int kCols = 2 * kLane;
constexpr int64_t kDepth = 128;
using V = simd::Vec<double, kLane>;

/// Rows k0.. of op(B), columns j0.. as kDepth x kCols, zero beyond the matrix.
void pack_b(const GemmArgs& g, int64_t k0, int64_t depth, int64_t j0, double* to) {
  const double* b = static_cast<const double*>(g.b);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t j = 0; j < kCols; ++j) {
      const int64_t row = k0 + k, column = j0 + j;
      to[k * kCols + j] = column >= g.n ? 0.0 : g.transpose_b ? b[column * g.ldb + row] : b[row * g.ldb + column];
    }
}

void pack_a(const GemmArgs& g, int64_t i0, int64_t k0, int64_t depth, double* to) {
  const double* a = static_cast<const double*>(g.a);
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t row = i0 + i, column = k0 + k;
      to[k * kRows + i] = row >= g.m ? 0.0 : g.transpose_a ? a[column * g.lda + row] : a[row * g.lda + column];
    }
}

void tile(const GemmArgs& g, int64_t i0, int64_t j0, int64_t depth, const double* a, const double* b, bool first) {
  V sum[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const V b0 = simd::load<kLane>(b + k * kCols), b1 = simd::load<kLane>(b + k * kCols + kLane);
    for (int i = 0; i < kRows; ++i) {
      const V x = simd::splat<kLane>(a[k * kRows + i]);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  double* c = static_cast<double*>(g.c);
  const int64_t rows = g.m - i0 < kRows ? g.m - i0 : kRows, columns = g.n - j0 < kCols ? g.n - j0 : kCols;
  double out[kCols];
  for (int64_t i = 0; i < rows; ++i) {
    simd::store<kLane>(out, sum[i][0]);
    simd::store<kLane>(out + kLane, sum[i][1]);
    double* row = c + (i0 + i) * g.ldc + j0;
    for (int64_t j = 0; j < columns; ++j) row[j] = first ? out[j] : row[j] + out[j];
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
void DgemmKernel::cpu(const Args& g) {
  alignas(64) double a[kDepth * kRows], b[kDepth * kCols];
  for (int64_t j0 = 0; j0 < g.n; j0 += kCols)
    for (int64_t k0 = 0; k0 < g.k; k0 += kDepth) {
      const int64_t depth = g.k - k0 < kDepth ? g.k - k0 : kDepth;
      pack_b(g, k0, depth, j0, b);
      for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
        pack_a(g, i0, k0, depth, a);
        tile(g, i0, j0, depth, a, b, k0 == 0);
      }
    }
}
template void DgemmKernel::cpu<kIsa>(const Args&);

/// op(B) is copied into whole vectors; then four rows at a time gather their products in registers.
template <Isa>
void SmallGemmKernel::cpu(const Args& g) {
  constexpr int kLaneF = simd::kLanes<float>;
  using F = simd::Vec<float, kLaneF>;
  alignas(64) float b[kMostB];
  const float* from_b = static_cast<const float*>(g.b);
  const float* a = static_cast<const float*>(g.a);
  float* c = static_cast<float*>(g.c);
  const int64_t width = (g.n + kLaneF - 1) / kLaneF * kLaneF, a_row = g.transpose_a ? 1 : g.lda,
                a_k = g.transpose_a ? g.lda : 1, b_k = g.transpose_b ? 1 : g.ldb, b_column = g.transpose_b ? g.ldb : 1;
  for (int64_t k = 0; k < g.k; ++k) {
    for (int64_t j = 0; j < g.n; ++j) b[k * width + j] = from_b[k * b_k + j * b_column];
    for (int64_t j = g.n; j < width; ++j) b[k * width + j] = 0;
  }
  const auto rows = [&]<int R>(int64_t i) {
    for (int64_t j = 0; j < width; j += kLaneF) {
      F sum[R] = {};
      for (int64_t k = 0; k < g.k; ++k) {
        const F column = simd::load<kLaneF>(b + k * width + j);
        for (int r = 0; r < R; ++r) sum[r] += simd::splat<kLaneF>(a[(i + r) * a_row + k * a_k]) * column;
      }
      for (int r = 0; r < R; ++r) {
        float* to = c + (i + r) * g.ldc + j;
        if (j + kLaneF <= g.n) {
          simd::store<kLaneF>(to, sum[r]);
        } else {
          float last[kLaneF];
          simd::store<kLaneF>(last, sum[r]);
          for (int64_t l = 0; l < g.n - j; ++l) to[l] = last[l];
        }
      }
    }
  };
  int64_t i = 0;
  for (; i + 4 <= g.m; i += 4) rows.template operator()<4>(i);
  for (; i < g.m; ++i) rows.template operator()<1>(i);
}
template void SmallGemmKernel::cpu<kIsa>(const Args&);

template <Isa>
void EpilogueKernel::cpu(const Args& args) {
  args.is_double ? finish<double>(args) : finish<float>(args);
}
template void EpilogueKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
