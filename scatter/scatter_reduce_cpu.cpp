// The general scatter, by an index of the source's shape. Elements that can meet lie on one line along the dimension, so
// lines are shared out to threads, some 64 neighbouring ones at a time, and each is walked in order: no atomics, and the
// same bits for every thread count. Lines of a single column cannot be shared: scatter_reduce.cpp turns that case into rows.

#include "tessera/core/half.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/scatter_reduce_kernels.h"

namespace tessera {
namespace {

using Args = ScatterAlongKernel::Args;

constexpr int64_t kLines = 64;             // taken together
constexpr int64_t kForkElements = 1 << 14;  // below which a second thread costs more than it brings

/// Calls f(first element of the source, first element of the output, lines) for groups of neighbouring lines.
template <class F>
TESSERA_INLINE void for_lines(const Args& k, const F& f) {
  const int64_t groups = (k.inner + kLines - 1) / kLines, inner = k.inner, length = k.length, size = k.size;
  const int64_t each = (length + size) * (inner < kLines ? inner : kLines);
  parallel_for(k.outer * groups, kForkElements / (each + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t o = g / groups, i = g % groups * kLines;
      f(o * length * inner + i, o * size * inner + i, inner - i < kLines ? inner - i : kLines);
    }
  });
}

template <class A>
TESSERA_INLINE bool beats(A value, A best) {
  return !(value <= best) && best == best;
}

template <class T, class I>
void forward(const Args& k, const I* index) {
  using A = simd::Compute<T>;
  const T* src = static_cast<const T*>(k.src);
  const T* initial = static_cast<const T*>(k.initial);
  A* work = static_cast<A*>(k.work);
  T* out = static_cast<T*>(k.out);
  int32_t* state = k.state;
  const int64_t inner = k.inner, length = k.length, size = k.size;
  const bool best = k.reduce == Reduce::max || k.reduce == Reduce::min, include = k.content == Initial::include;
  const bool mul = k.reduce == Reduce::mul, mean = k.reduce == Reduce::mean, has_initial = k.content != Initial::none;
  const A sign = k.reduce == Reduce::min ? A(-1) : A(1);
  for_lines(k, [=](int64_t from, int64_t to, int64_t lines) {
    for (int64_t s = 0; s < size; ++s)
      for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) {
        work[i] = include ? A(initial[i]) * sign : mul ? A(1) : A(0);
        state[i] = best ? -1 : 0;
      }
    for (int64_t d = 0; d < length; ++d)
      for (int64_t i = 0; i < lines; ++i) {
        const int64_t e = from + d * inner + i, t = to + int64_t(index[e]) * inner + i;
        const A value = A(src[e]);
        if (best) {
          if ((state[t] < 0 && !include) || beats(value * sign, work[t])) {
            work[t] = value * sign;
            state[t] = int32_t(d);
          }
        } else {
          work[t] = mul ? work[t] * value : work[t] + value;
          ++state[t];
        }
      }
    for (int64_t s = 0; s < size; ++s)
      for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) {
        A value = work[i] * sign;
        const bool empty = best ? state[i] < 0 && !include : state[i] == 0;
        const int64_t n = best ? 1 : int64_t(state[i]) + (include ? 1 : 0);
        if (mean && n > 0) value = value / A(n);
        if (empty) value = has_initial ? A(initial[i]) : mul ? A(1) : A(0);
        out[i] = T(value);
      }
  });
}

template <class T, class I>
void backward(const Args& k, const I* index) {
  using A = simd::Compute<T>;
  const T* src = static_cast<const T*>(k.src);
  const T* initial = static_cast<const T*>(k.initial);
  const T* grad = static_cast<const T*>(k.grad);
  A* work = static_cast<A*>(k.work);
  T* out = static_cast<T*>(k.grad_src);
  const int32_t* state = k.state;
  const int64_t inner = k.inner, length = k.length, size = k.size, more = k.content == Initial::include ? 1 : 0;
  const Reduce reduce = k.reduce;
  for_lines(k, [=](int64_t from, int64_t to, int64_t lines) {
    if (reduce == Reduce::mul) {
      // What is before an element goes into its result on the way forth, what is behind it on the way back.
      for (int64_t s = 0; s < size; ++s)
        for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i)
          work[i] = A(grad[i]) * (more == 1 ? A(initial[i]) : A(1));
      for (int64_t d = 0; d < length; ++d)
        for (int64_t i = 0; i < lines; ++i) {
          const int64_t e = from + d * inner + i, t = to + int64_t(index[e]) * inner + i;
          out[e] = T(work[t]);
          work[t] *= A(src[e]);
        }
      for (int64_t s = 0; s < size; ++s)
        for (int64_t i = to + s * inner; i < to + s * inner + lines; ++i) work[i] = A(1);
      for (int64_t d = length - 1; d >= 0; --d)
        for (int64_t i = 0; i < lines; ++i) {
          const int64_t e = from + d * inner + i, t = to + int64_t(index[e]) * inner + i;
          out[e] = T(A(out[e]) * work[t]);
          work[t] *= A(src[e]);
        }
      return;
    }
    for (int64_t d = 0; d < length; ++d)
      for (int64_t i = 0; i < lines; ++i) {
        const int64_t e = from + d * inner + i, t = to + int64_t(index[e]) * inner + i;
        if (reduce == Reduce::sum)
          out[e] = grad[t];
        else if (reduce == Reduce::mean)
          out[e] = T(A(grad[t]) / A(int64_t(state[t]) + more));
        else
          out[e] = state[t] == int32_t(d) ? grad[t] : T();
      }
  });
}

template <class T>
void along(const Args& k) {
  if (k.grad == nullptr)
    k.index32 != nullptr ? forward<T>(k, k.index32) : forward<T>(k, k.index64);
  else
    k.index32 != nullptr ? backward<T>(k, k.index32) : backward<T>(k, k.index64);
}

}  // namespace

template <Isa>
void ScatterAlongKernel::cpu(const Args& args) {
  switch (args.type) {
    case FloatType::f32: return along<float>(args);
    case FloatType::f64: return along<double>(args);
    case FloatType::bf16: return along<bf16>(args);
    case FloatType::f16: return along<f16>(args);
  }
}
template void ScatterAlongKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
