// How lines are grouped into vectors is told in softmax_lines_kernels.h. Every line is done by one thread, in an order that
// depends on its length alone.

#include "tessera/core/ops/softmax_kernels.h"

#include "tessera/core/ops/softmax_lines_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

using softmax_lines::kGroup;

constexpr int64_t kGrain = 1 << 13;

/// One group of lines, `lanes` of them. x and out may be the same.
template <class T>
TESSERA_INLINE void forward_group(bool logarithm, const T* x, int64_t step, int64_t length, int lanes, T* out,
                                  int64_t out_step) {
  T m[kGroup], sum[kGroup];
  softmax_lines::largest(x, step, length, lanes, m);
  if (logarithm) {
    softmax_lines::sum_exponentials(x, step, length, lanes, m, sum);
    for (int l = 0; l < lanes; ++l) sum[l] = simd::log(sum[l]);
    for (int64_t j = 0; j < length; ++j)
      for (int l = 0; l < lanes; ++l) out[j * out_step + l] = (x[j * step + l] - m[l]) - sum[l];
  } else {
    softmax_lines::exponentials(x, step, length, lanes, m, out, out_step, sum);
    for (int l = 0; l < lanes; ++l) sum[l] = T(1) / sum[l];
    for (int64_t j = 0; j < length; ++j)
      for (int l = 0; l < lanes; ++l) out[j * out_step + l] *= sum[l];
  }
}

template <class T>
TESSERA_INLINE void gradient_group(bool logarithm, const T* y, const T* grad, int64_t step, int64_t length, int lanes,
                                   T* out) {
  T sum[kGroup];
  for (int l = 0; l < lanes; ++l) sum[l] = 0;
  if (logarithm) {
    for (int64_t j = 0; j < length; ++j)
      for (int l = 0; l < lanes; ++l) sum[l] += grad[j * step + l];
    for (int64_t j = 0; j < length; ++j)
      for (int l = 0; l < lanes; ++l) out[j * step + l] = grad[j * step + l] - simd::exp(y[j * step + l]) * sum[l];
  } else {
    for (int64_t j = 0; j < length; ++j)
      for (int l = 0; l < lanes; ++l) sum[l] += grad[j * step + l] * y[j * step + l];
    for (int64_t j = 0; j < length; ++j)
      for (int l = 0; l < lanes; ++l) out[j * step + l] = y[j * step + l] * (grad[j * step + l] - sum[l]);
  }
}

/// Rows of kGroup elements or more.
template <class T>
void forward_row(bool logarithm, const T* x, int64_t length, T* out) {
  const T m = softmax_lines::row_largest(x, length);
  if (logarithm) {
    const T norm = simd::log(softmax_lines::row_sum<T>(length, [=](int64_t j) { return simd::exp(x[j] - m); }));
    softmax_lines::row_map(length, x, out, [=](int64_t, T value) { return (value - m) - norm; });
  } else {
    const T inverse = T(1) / softmax_lines::row_sum<T>(length, [=](int64_t j) { return out[j] = simd::exp(x[j] - m); });
    softmax_lines::row_map(length, out, out, [=](int64_t, T value) { return value * inverse; });
  }
}

template <class T>
void gradient_row(bool logarithm, const T* y, const T* grad, int64_t length, T* out) {
  if (logarithm) {
    const T sum = softmax_lines::row_sum<T>(length, [=](int64_t j) { return grad[j]; });
    softmax_lines::row_map(length, y, out, [=](int64_t j, T value) { return grad[j] - simd::exp(value) * sum; });
  } else {
    const T sum = softmax_lines::row_sum<T>(length, [=](int64_t j) { return grad[j] * y[j]; });
    softmax_lines::row_map(length, y, out, [=](int64_t j, T value) { return value * (grad[j] - sum); });
  }
}

/// Rows [begin, end), all short, kGroup at a time through transposed copies.
template <class T>
void short_rows(bool logarithm, const T* x, const T* grad, T* out, int64_t length, int64_t begin, int64_t end) {
  alignas(64) T buffer[kGroup * kGroup], buffer2[kGroup * kGroup];
  const T* rows[kGroup];
  for (int64_t i = begin; i < end; i += kGroup) {
    const int count = end - i < kGroup ? int(end - i) : kGroup;
    for (int l = 0; l < count; ++l) rows[l] = x + (i + l) * length;
    softmax_lines::gather_rows(rows, count, length, buffer);
    if (grad == nullptr) {
      forward_group(logarithm, buffer, kGroup, length, kGroup, buffer, kGroup);
    } else {
      for (int l = 0; l < count; ++l) rows[l] = grad + (i + l) * length;
      softmax_lines::gather_rows(rows, count, length, buffer2);
      gradient_group(logarithm, buffer, buffer2, kGroup, length, kGroup, buffer);
    }
    softmax_lines::scatter_rows(buffer, count, length, out + i * length);
  }
}

template <class T>
void run_lines(const SoftmaxKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.out);
  const int64_t length = k.length, inner = k.inner;
  const bool logarithm = k.op == Softmax::log_softmax || k.op == Softmax::log_softmax_grad;
  if (length == 0) return;
  if (inner == 1 && length < kGroup) {
    const int64_t groups = (k.outer + kGroup - 1) / kGroup, outer = k.outer;
    parallel_for(groups, kGrain / (length * kGroup) + 1, [=](int64_t begin, int64_t end) {
      const int64_t last = end * kGroup < outer ? end * kGroup : outer;
      short_rows(logarithm, x, grad, out, length, begin * kGroup, last);
    });
  } else if (inner == 1) {
    parallel_for(k.outer, kGrain / length + 1, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        grad == nullptr ? forward_row(logarithm, x + i * length, length, out + i * length)
                        : gradient_row(logarithm, x + i * length, grad + i * length, length, out + i * length);
    });
  } else {
    const int64_t chunks = (inner + kGroup - 1) / kGroup;
    parallel_for(k.outer * chunks, kGrain / (length * kGroup) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t column = t % chunks * kGroup, at = t / chunks * length * inner + column;
        const int lanes = inner - column < kGroup ? int(inner - column) : kGroup;
        if (grad == nullptr)
          lanes == kGroup ? forward_group(logarithm, x + at, inner, length, kGroup, out + at, inner)
                          : forward_group(logarithm, x + at, inner, length, lanes, out + at, inner);
        else
          lanes == kGroup ? gradient_group(logarithm, x + at, grad + at, inner, length, kGroup, out + at)
                          : gradient_group(logarithm, x + at, grad + at, inner, length, lanes, out + at);
      }
    });
  }
}

}  // namespace

template <Isa>
void SoftmaxKernel::cpu(const Args& args) {
  args.is_double ? run_lines<double>(args) : run_lines<float>(args);
}
template void SoftmaxKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
