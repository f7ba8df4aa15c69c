#include "tessera/core/optim/adam_kernels.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

TESSERA_INLINE float root(float x) { return __builtin_sqrtf(x); }
TESSERA_INLINE double root(double x) { return __builtin_sqrt(x); }

template <class T>
void update(const AdamKernel::Args& k) {
  T* __restrict w = static_cast<T*>(k.w);
  const T* __restrict g = static_cast<const T*>(k.g);
  T* __restrict m = static_cast<T*>(k.m);
  T* __restrict v = static_cast<T*>(k.v);
  const T b1 = T(k.beta1), b2 = T(k.beta2), c1 = T(1 - k.beta1), c2 = T(1 - k.beta2), eps = T(k.eps),
          decay = T(k.weight_decay), shrink = T(k.shrink), step = T(k.step_size), inverse_root = T(k.inverse_root);
  for (int64_t i = k.begin; i < k.end; ++i) {
    const T grad = g[i] + decay * w[i];
    m[i] = b1 * m[i] + c1 * grad;
    v[i] = b2 * v[i] + c2 * grad * grad;
    w[i] = w[i] * shrink - step * m[i] / (root(v[i]) * inverse_root + eps);
  }
}

}  // namespace

template <Isa>
void AdamKernel::cpu(const Args& args) {
  args.is_double ? update<double>(args) : update<float>(args);
}
template void AdamKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
