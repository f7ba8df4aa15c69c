// One plain loop per function, over the branch-free functions of core/simd.h, which the compiler turns into vectors of the
// instruction set. Gradients are computed from what costs least: the output where f' is a polynomial of f, else the input.

#include "tessera/core/ops/unary_kernels.h"

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 14;

template <class T, class F>
TESSERA_INLINE void each(const UnaryKernel::Args& k, F f) {
  const T* x = static_cast<const T*>(k.x);
  T* out = static_cast<T*>(k.out);
  parallel_for(k.count, kGrain, [=](int64_t begin, int64_t end) {
    const F local = f;  // its parameters in registers: a store to `out` could change them where they are
    for (int64_t i = begin; i < end; ++i) out[i] = local(x[i]);
  });
}

/// f(saved, grad).
template <class T, class F>
TESSERA_INLINE void each_gradient(const UnaryKernel::Args& k, F f) {
  const T* x = static_cast<const T*>(k.x);
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.out);
  parallel_for(k.count, kGrain, [=](int64_t begin, int64_t end) {
    const F local = f;
    for (int64_t i = begin; i < end; ++i) out[i] = local(x[i], grad[i]);
  });
}

template <class T>
inline constexpr T kInverseRoot2 = T(0.70710678118654752440);
template <class T>
inline constexpr T kInverseRoot2Pi = T(0.39894228040143267794);
template <class T>
inline constexpr T kRoot2OverPi = T(0.79788456080286535588);
template <class T>
inline constexpr T kCube = T(0.044715);

template <class T>
TESSERA_INLINE T softplus(T x) {
  return (x > T(0) ? x : T(0)) + simd::log1p(simd::exp(-simd::abs(x)));
}

/// Both sides in one sum, one of them 0: a choice between them would keep the loop from becoming vectors.
template <class T>
TESSERA_INLINE T elu(T x, T alpha) {
  return (x > T(0) ? x : T(0)) + alpha * simd::expm1(x > T(0) ? T(0) : x);
}

/// The normal distribution function, absolute error below 3e-7: erf as a quotient of polynomials (near-minimax up to 3.92,
/// where it is 1), which costs one division and no exponential. Beside x's own size nothing smaller matters to x Phi(x).
TESSERA_INLINE float normal_cdf(float x) {
  const float v = x * kInverseRoot2<float>, low = v < -3.92f ? -3.92f : v, t = low > 3.92f ? 3.92f : low, z = t * t;
  float p = 2.0500747e-06f, q = 3.8091628e-05f;
  p = p * z + 0.0002848835f;
  p = p * z + 0.003765666f;
  p = p * z + 0.052748878f;
  p = p * z + 0.19040763f;
  p = p * z + 1.1283791f;
  q = q * z + 0.0011625467f;
  q = q * z + 0.014969316f;
  q = q * z + 0.1141096f;
  q = q * z + 0.5020771f;
  q = q * z + 1.0f;
  const float e = t * p / q, above = e < -1.0f ? -1.0f : e;
  return 0.5f + 0.5f * (above > 1.0f ? 1.0f : above);
}
TESSERA_INLINE double normal_cdf(double x) { return 0.5 * (1.0 + simd::erf(x * kInverseRoot2<double>)); }

template <class T>
void forward(const UnaryKernel::Args& k) {
  const T p = T(k.p), q = T(k.q);
  switch (k.op) {
    case Unary::scale: return each<T>(k, [=](T x) { return x * p; });
    case Unary::shift: return each<T>(k, [=](T x) { return x + p; });
    case Unary::exp: return each<T>(k, [](T x) { return simd::exp(x); });
    case Unary::log: return each<T>(k, [](T x) { return simd::log(x); });
    case Unary::sqrt: return each<T>(k, [](T x) { return simd::sqrt(x); });
    case Unary::tanh: return each<T>(k, [](T x) { return simd::tanh(x); });
    case Unary::sigmoid: return each<T>(k, [](T x) { return simd::sigmoid(x); });
    case Unary::relu: return each<T>(k, [](T x) { return x < T(0) ? T(0) : x; });
    case Unary::leaky_relu: return each<T>(k, [=](T x) { return x * (x > T(0) ? T(1) : p); });
    case Unary::elu: return each<T>(k, [=](T x) { return elu(x, p); });
    case Unary::gelu: return each<T>(k, [](T x) { return x * normal_cdf(x); });
    case Unary::gelu_tanh:
      return each<T>(k, [](T x) { return T(0.5) * x * (T(1) + simd::tanh(kRoot2OverPi<T> * (x + kCube<T> * x * x * x))); });
    case Unary::softplus: return each<T>(k, [](T x) { return softplus(x); });
    case Unary::abs: return each<T>(k, [](T x) { return simd::abs(x); });
    case Unary::sign: return each<T>(k, [](T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; });
    case Unary::square: return each<T>(k, [](T x) { return x * x; });
    case Unary::clamp:
      return each<T>(k, [=](T x) {
        const T low = x < p ? p : x;
        return low > q ? q : low;
      });
    case Unary::pow:
      if (k.p == -1) return each<T>(k, [](T x) { return T(1) / x; });
      if (k.p == -0.5) return each<T>(k, [](T x) { return T(1) / simd::sqrt(x); });
      if (k.p == 3) return each<T>(k, [](T x) { return x * x * x; });
      return each<T>(k, [=](T x) { return simd::pow(x, p); });
  }
}

template <class T>
void gradient(const UnaryKernel::Args& k) {
  const T p = T(k.p), q = T(k.q);
  switch (k.op) {
    case Unary::scale: return each_gradient<T>(k, [=](T, T g) { return g * p; });
    case Unary::shift:
    case Unary::sign: return each_gradient<T>(k, [](T, T g) { return g; });
    case Unary::exp: return each_gradient<T>(k, [](T y, T g) { return g * y; });
    case Unary::log: return each_gradient<T>(k, [](T x, T g) { return g / x; });
    case Unary::sqrt: return each_gradient<T>(k, [](T y, T g) { return g * T(0.5) / y; });
    case Unary::tanh: return each_gradient<T>(k, [](T y, T g) { return g * (T(1) - y * y); });
    case Unary::sigmoid: return each_gradient<T>(k, [](T y, T g) { return g * (y * (T(1) - y)); });
    case Unary::relu: return each_gradient<T>(k, [](T y, T g) { return y > T(0) ? g : T(0); });
    case Unary::leaky_relu: return each_gradient<T>(k, [=](T x, T g) { return g * (x > T(0) ? T(1) : p); });
    case Unary::elu: return each_gradient<T>(k, [=](T y, T g) { return y > T(0) ? g : g * (y + p); });
    case Unary::gelu:
      return each_gradient<T>(
          k, [](T x, T g) { return g * (normal_cdf(x) + x * kInverseRoot2Pi<T> * simd::exp(T(-0.5) * x * x)); });
    case Unary::gelu_tanh:
      return each_gradient<T>(k, [](T x, T g) {
        const T t = simd::tanh(kRoot2OverPi<T> * (x + kCube<T> * x * x * x));
        const T inner = kRoot2OverPi<T> * (T(1) + T(3) * kCube<T> * x * x);
        return g * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner);
      });
    case Unary::softplus: return each_gradient<T>(k, [](T x, T g) { return g * simd::sigmoid(x); });
    case Unary::abs: return each_gradient<T>(k, [](T x, T g) { return x > T(0) ? g : x < T(0) ? -g : x; });
    case Unary::square: return each_gradient<T>(k, [](T x, T g) { return g * (x + x); });
    case Unary::clamp: return each_gradient<T>(k, [=](T x, T g) { return x >= p && x <= q ? g : T(0); });
    case Unary::pow:
      if (k.p == -1) return each_gradient<T>(k, [](T x, T g) { return -g / (x * x); });
      if (k.p == -0.5) return each_gradient<T>(k, [](T x, T g) { return T(-0.5) * g / (x * simd::sqrt(x)); });
      if (k.p == 3) return each_gradient<T>(k, [](T x, T g) { return g * T(3) * x * x; });
      if (k.p == 0) return each_gradient<T>(k, [](T, T) { return T(0); });
      return each_gradient<T>(k, [=](T x, T g) { return g * p * simd::pow(x, p - T(1)); });
  }
}

}  // namespace

template <Isa>
void UnaryKernel::cpu(const Args& args) {
  if (args.grad == nullptr)
    args.is_double ? forward<double>(args) : forward<float>(args);
  else
    args.is_double ? gradient<double>(args) : gradient<float>(args);
}
template void UnaryKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
