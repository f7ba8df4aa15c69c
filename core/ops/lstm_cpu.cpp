// What is element by element in a step, in one pass over its gates while they are in the cache.

#include "tessera/core/ops/lstm_kernels.h"

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

template <class T>
void forward(const LstmStepKernel::Args& k) {
  const int64_t n = k.hidden;
  T* all_gates = static_cast<T*>(k.gates);
  const T* all_recurrent = static_cast<const T*>(k.recurrent);
  const T* all_before = static_cast<const T*>(k.c_before);
  T* all_c = static_cast<T*>(k.c);
  T* all_h = static_cast<T*>(k.h);
  parallel_for(k.rows, (1 << 12) / (n + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* __restrict gates = all_gates + row * 4 * n;
      if (all_recurrent != nullptr) {
        const T* __restrict add = all_recurrent + row * 4 * n;
        for (int64_t j = 0; j < 4 * n; ++j) gates[j] += add[j];
      }
      for (int64_t j = 0; j < 2 * n; ++j) gates[j] = simd::sigmoid(gates[j]);
      for (int64_t j = 2 * n; j < 3 * n; ++j) gates[j] = simd::tanh(gates[j]);
      for (int64_t j = 3 * n; j < 4 * n; ++j) gates[j] = simd::sigmoid(gates[j]);
      const T *i = gates, *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;
      T* __restrict c = all_c + row * n;
      T* __restrict h = all_h + row * n;
      if (all_before != nullptr) {
        const T* before = all_before + row * n;
        for (int64_t j = 0; j < n; ++j) c[j] = f[j] * before[j] + i[j] * g[j];
      } else {
        for (int64_t j = 0; j < n; ++j) c[j] = i[j] * g[j];
      }
      for (int64_t j = 0; j < n; ++j) h[j] = o[j] * simd::tanh(c[j]);
    }
  });
}

template <class T>
void backward(const LstmStepKernel::Args& k) {
  const int64_t n = k.hidden;
  const T* all_gates = static_cast<const T*>(k.gates);
  const T* all_next = static_cast<const T*>(k.recurrent);
  const T* all_before = static_cast<const T*>(k.c_before);
  const T* all_c = static_cast<const T*>(k.c);
  const T* all_grad = static_cast<const T*>(k.grad_h);
  T* all_grad_c = static_cast<T*>(k.grad_c);
  T* all_out = static_cast<T*>(k.grad_gates);
  const bool last_step = k.last_step;
  parallel_for(k.rows, (1 << 12) / (n + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T *i = all_gates + row * 4 * n, *f = i + n, *g = f + n, *o = g + n, *c = all_c + row * n,
              *grad = all_grad + row * n;
      const T* next = all_next != nullptr ? all_next + row * n : nullptr;
      const T* before = all_before != nullptr ? all_before + row * n : nullptr;
      T* __restrict grad_c = all_grad_c + row * n;
      T* __restrict out = all_out + row * 4 * n;
      for (int64_t j = 0; j < n; ++j) {
        const T dh = grad[j] + (next != nullptr ? next[j] : T(0)), t = simd::tanh(c[j]);
        const T dc = dh * o[j] * (T(1) - t * t) + (last_step ? T(0) : grad_c[j]);
        out[j] = dc * g[j] * (i[j] * (T(1) - i[j]));
        out[n + j] = dc * (before != nullptr ? before[j] : T(0)) * (f[j] * (T(1) - f[j]));
        out[2 * n + j] = dc * i[j] * (T(1) - g[j] * g[j]);
        out[3 * n + j] = dh * t * (o[j] * (T(1) - o[j]));
        grad_c[j] = dc * f[j];
      }
    }
  });
}

}  // namespace

template <Isa>
void LstmStepKernel::cpu(const Args& args) {
  if (args.grad_h == nullptr)
    args.is_double ? forward<double>(args) : forward<float>(args);
  else
    args.is_double ? backward<double>(args) : backward<float>(args);
}
template void LstmStepKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
