// Rows are short (classes), so each is done by one thread in three passes that stay in the first-level cache: maximum,
// sum of exponentials, result.

#include "tessera/core/ops/softmax_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

int64_t rows_to_fork(int64_t width) { return (1 << 13) / (width + 1) + 1; }

template <class T>
TESSERA_INLINE T row_max(const T* x, int64_t width) {
  T m = x[0];
  for (int64_t j = 1; j < width; ++j) m = x[j] > m ? x[j] : m;
  // A row of -inf alone has no shift to make: exp(-inf - 0) is the 0 that is meant.
  return m == -__builtin_inf() ? T(0) : m;
}

/// Sum of exp(x - shift) over the row.
template <class T>
TESSERA_INLINE T exp_sum(const T* x, int64_t width, T shift) {
  T sum = 0;
  for (int64_t j = 0; j < width; ++j) sum += simd::exp(x[j] - shift);
  return sum;
}

template <class T>
void softmax_row(const T* x, T* y, int64_t width) {
  const T shift = row_max(x, width);
  for (int64_t j = 0; j < width; ++j) y[j] = simd::exp(x[j] - shift);
  T sum = 0;
  for (int64_t j = 0; j < width; ++j) sum += y[j];
  const T inverse = T(1) / sum;
  for (int64_t j = 0; j < width; ++j) y[j] *= inverse;
}

template <class T>
TESSERA_INLINE T log_sum(T sum) {
  return sizeof(T) == 8 ? T(__builtin_log(double(sum))) : T(__builtin_logf(float(sum)));
}

template <class T>
void log_softmax_row(const T* x, T* y, int64_t width) {
  const T shift = row_max(x, width);
  // Not x - (shift + log): beside a large shift the logarithm would lose its digits.
  const T log = log_sum(exp_sum(x, width, shift));
  for (int64_t j = 0; j < width; ++j) y[j] = (x[j] - shift) - log;
}

template <class T>
void grad_row(bool logarithm, const T* y, const T* grad, T* out, int64_t width) {
  T sum = 0;
  if (logarithm) {
    for (int64_t j = 0; j < width; ++j) sum += grad[j];
    for (int64_t j = 0; j < width; ++j) out[j] = grad[j] - simd::exp(y[j]) * sum;
  } else {
    for (int64_t j = 0; j < width; ++j) sum += grad[j] * y[j];
    for (int64_t j = 0; j < width; ++j) out[j] = y[j] * (grad[j] - sum);
  }
}

template <class T>
void run_rows(const SoftmaxKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.out);
  const int64_t width = k.width;
  if (width == 0) return;
  const Softmax op = k.op;
  parallel_for(k.rows, rows_to_fork(width), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = x + i * width;
      switch (op) {
        case Softmax::softmax: softmax_row(row, out + i * width, width); break;
        case Softmax::log_softmax: log_softmax_row(row, out + i * width, width); break;
        case Softmax::softmax_grad: grad_row(false, row, grad + i * width, out + i * width, width); break;
        case Softmax::log_softmax_grad: grad_row(true, row, grad + i * width, out + i * width, width); break;
      }
    }
  });
}

template <class T>
void cross_entropy_forward(const CrossEntropyKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  const int32_t* labels = k.labels;
  const int32_t* chosen = k.chosen;
  const int64_t width = k.width;
  *k.loss = parallel_sum(k.count, 4096, [=](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t c = begin; c < end; ++c) {
      const int64_t i = chosen ? chosen[c] : c;
      const T* row = x + i * width;
      const T shift = row_max(row, width);
      sum += double(log_sum(exp_sum(row, width, shift))) - double(row[labels[i]] - shift);
    }
    return sum;
  });
}

template <class T>
void cross_entropy_gradient(const CrossEntropyKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  T* grad = static_cast<T*>(k.grad);
  const int32_t* labels = k.labels;
  const int32_t* times = k.times;
  const int64_t width = k.width;
  const double factor = k.factor;
  parallel_for(k.rows, rows_to_fork(width), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = grad + i * width;
      const T f = T(factor * (times ? times[i] : 1));
      if (f == T(0)) {
        for (int64_t j = 0; j < width; ++j) row[j] = T(0);
        continue;
      }
      softmax_row(x + i * width, row, width);
      row[labels[i]] -= T(1);
      for (int64_t j = 0; j < width; ++j) row[j] *= f;
    }
  });
}

}  // namespace

template <Isa>
void SoftmaxKernel::cpu(const Args& args) {
  args.is_double ? run_rows<double>(args) : run_rows<float>(args);
}
template void SoftmaxKernel::cpu<kIsa>(const Args&);

template <Isa>
void CrossEntropyKernel::cpu(const Args& args) {
  if (args.grad != nullptr)
    args.is_double ? cross_entropy_gradient<double>(args) : cross_entropy_gradient<float>(args);
  else
    args.is_double ? cross_entropy_forward<double>(args) : cross_entropy_forward<float>(args);
}
template void CrossEntropyKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
