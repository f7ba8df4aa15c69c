#include "tessera/core/simd.h"
#include "tessera/tests/core/simd_kernels.h"

namespace tessera::test {
namespace {

template <class T>
void math(const SimdMathKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  T* y = static_cast<T*>(k.y);
  if (k.log)
    for (int64_t i = 0; i < k.count; ++i) y[i] = simd::log(x[i]);
  else
    for (int64_t i = 0; i < k.count; ++i) y[i] = simd::exp(x[i]);
}

}  // namespace

template <Isa>
void SimdMathKernel::cpu(const Args& args) {
  args.is_double ? math<double>(args) : math<float>(args);
}
template void SimdMathKernel::cpu<kIsa>(const Args&);

template <Isa>
void SimdVectorKernel::cpu(const Args& k) {
  constexpr int kN = simd::kLanes<float>;
  *k.lanes = kN;
  *k.registers = simd::kRegisters;
  const simd::Vec<float, kN> a = simd::splat<kN>(k.a), one = simd::splat<kN>(1.0f);
  int64_t i = 0;
  for (; i + kN <= k.count; i += kN) simd::store<kN>(k.out + i, a * simd::load<kN>(k.x + i) + one);
  for (; i < k.count; ++i) k.out[i] = k.a * k.x[i] + 1;
}
template void SimdVectorKernel::cpu<kIsa>(const Args&);

}  // namespace tessera::test
