// Elementwise loops: plain indexed loops that the compiler vectorises for each instruction set. All are memory-bound, so
// the only care taken is one pass over each array and no fork below the size where it pays.

#include "tessera/core/ops/elementwise_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 15;

template <class T, class F>
TESSERA_INLINE void each(const ElementwiseKernel::Args& k, F f) {
  const T* a = static_cast<const T*>(k.a);
  const T* b = static_cast<const T*>(k.b);
  T* out = static_cast<T*>(k.out);
  parallel_for(k.count, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = f(a, b, i);
  });
}

template <class T>
void run_op(const ElementwiseKernel::Args& k) {
  const T factor = T(k.factor);
  switch (k.op) {
    case Elementwise::add: return each<T>(k, [](const T* a, const T* b, int64_t i) { return a[i] + b[i]; });
    case Elementwise::sub: return each<T>(k, [](const T* a, const T* b, int64_t i) { return a[i] - b[i]; });
    case Elementwise::mul: return each<T>(k, [](const T* a, const T* b, int64_t i) { return a[i] * b[i]; });
    case Elementwise::scale: return each<T>(k, [=](const T* a, const T*, int64_t i) { return a[i] * factor; });
    case Elementwise::relu:
      return each<T>(k, [](const T* a, const T*, int64_t i) { return a[i] < T(0) ? T(0) : a[i]; });
    case Elementwise::relu_grad:
      return each<T>(k, [](const T* a, const T* b, int64_t i) { return a[i] > T(0) ? b[i] : T(0); });
    case Elementwise::add_bias: {
      const T* a = static_cast<const T*>(k.a);
      const T* bias = static_cast<const T*>(k.b);
      T* out = static_cast<T*>(k.out);
      const int64_t width = k.width;
      parallel_for(width == 0 ? 0 : k.count / width, kGrain / (width + 1) + 1, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t j = 0; j < width; ++j) out[i * width + j] = a[i * width + j] + bias[j];
      });
      return;
    }
  }
}

}  // namespace

template <Isa>
void ElementwiseKernel::cpu(const Args& args) {
  args.is_double ? run_op<double>(args) : run_op<float>(args);
}
template void ElementwiseKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
