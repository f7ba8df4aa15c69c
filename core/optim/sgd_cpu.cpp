#include "tessera/core/optim/sgd_kernels.h"

#include "tessera/core/simd.h"

namespace tessera {
namespace {

template <class T>
void update(const SgdKernel::Args& k) {
  T* __restrict w = static_cast<T*>(k.w);
  const T* __restrict g = static_cast<const T*>(k.g);
  T* __restrict b = static_cast<T*>(k.b);
  const T lr = T(k.lr), momentum = T(k.momentum), decay = T(k.weight_decay);
  if (b == nullptr) {
    for (int64_t i = k.begin; i < k.end; ++i) w[i] -= lr * (g[i] + decay * w[i]);
  } else if (k.nesterov) {
    for (int64_t i = k.begin; i < k.end; ++i) {
      const T grad = g[i] + decay * w[i];
      b[i] = momentum * b[i] + grad;
      w[i] -= lr * (grad + momentum * b[i]);
    }
  } else {
    for (int64_t i = k.begin; i < k.end; ++i) {
      b[i] = momentum * b[i] + (g[i] + decay * w[i]);
      w[i] -= lr * b[i];
    }
  }
}

}  // namespace

template <Isa>
void SgdKernel::cpu(const Args& args) {
  args.is_double ? update<double>(args) : update<float>(args);
}
template void SgdKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
