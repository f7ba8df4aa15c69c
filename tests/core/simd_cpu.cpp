#include "tessera/core/simd.h"
#include "tessera/tests/core/simd_kernels.h"

namespace tessera::test {
namespace {

template <class T, class F>
TESSERA_INLINE void each(const SimdMathKernel::Args& k, F f) {
  const T* x = static_cast<const T*>(k.x);
  T* y = static_cast<T*>(k.y);
  for (int64_t i = 0; i < k.count; ++i) y[i] = f(x[i]);
}

template <class T>
void math(const SimdMathKernel::Args& k) {
  switch (k.function) {
    case SimdFunction::exp: return each<T>(k, [](T x) { return simd::exp(x); });
    case SimdFunction::log: return each<T>(k, [](T x) { return simd::log(x); });
    case SimdFunction::log1p: return each<T>(k, [](T x) { return simd::log1p(x); });
    case SimdFunction::expm1: return each<T>(k, [](T x) { return simd::expm1(x); });
    case SimdFunction::tanh: return each<T>(k, [](T x) { return simd::tanh(x); });
    case SimdFunction::sigmoid: return each<T>(k, [](T x) { return simd::sigmoid(x); });
    case SimdFunction::erf: return each<T>(k, [](T x) { return simd::erf(x); });
  }
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
