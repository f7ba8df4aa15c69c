#include "tessera/core/ops/create_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 16;
constexpr int kLane = simd::kLanes<float>;

template <class T>
void convert(const CastKernel::Args& k) {
  const bool narrow = k.narrow;
  const void* from = k.from;
  void* to = k.to;
  parallel_for(k.count, kGrain, [=](int64_t begin, int64_t end) {
    int64_t i = begin;
    if (narrow) {
      const float* x = static_cast<const float*>(from);
      T* y = static_cast<T*>(to);
      for (; i + kLane <= end; i += kLane) simd::store_compute<kLane, T>(y + i, simd::load<kLane>(x + i));
      for (; i < end; ++i) y[i] = T(x[i]);
    } else {
      const T* x = static_cast<const T*>(from);
      float* y = static_cast<float*>(to);
      for (; i + kLane <= end; i += kLane) simd::store<kLane>(y + i, simd::load_compute<kLane>(x + i));
      for (; i < end; ++i) y[i] = float(x[i]);
    }
  });
}

}  // namespace

template <Isa>
void CastKernel::cpu(const Args& args) {
  args.is_f16 ? convert<f16>(args) : convert<bf16>(args);
}
template void CastKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
