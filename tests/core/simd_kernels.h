#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera::test {

enum class SimdFunction { exp, log, log1p, expm1, tanh, sigmoid, erf };

/// y = f(x) by core/simd.h, in a loop like those of the library's kernels.
struct SimdMathKernel {
  struct Args {
    SimdFunction function;
    bool is_double;
    int64_t count;
    const void* x;
    void* y;
  };
  static constexpr const char* name = "simd_math";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// out[i] = a * x[i] + 1 through full vectors, their tail and splat; `lanes` reports kLanes<float>.
struct SimdVectorKernel {
  struct Args {
    int64_t count;
    float a;
    const float* x;
    float* out;
    int* lanes;
    int* registers;
  };
  static constexpr const char* name = "simd_vector";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera::test
