#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// C (M, N) = op(A) op(B), row-major, leading dimensions in elements; C is written, never read.
struct GemmArgs {
  bool is_double;
  bool transpose_a, transpose_b;
  int64_t m, n, k;
  const void* a;
  int64_t lda;
  const void* b;
  int64_t ldb;
  void* c;
  int64_t ldc;
};

/// One tile of a float product on the calling thread, by oneDNN. m, n, k >= 1.
void onednn_sgemm(const GemmArgs& args);

/// A double product on the calling thread.
struct DgemmKernel {
  using Args = GemmArgs;
  static constexpr const char* name = "matmul";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// A float product so small that to prepare oneDNN's call takes longer: `fits` says which; on the calling thread.
struct SmallGemmKernel {
  using Args = GemmArgs;
  static constexpr int64_t kMostB = 2048;  // floats of op(B), its rows padded to 16
  static constexpr bool fits(int64_t m, int64_t n, int64_t k) {
    return k * ((n + 15) / 16 * 16) <= kMostB && m * n * k <= 1 << 13;
  }
  static constexpr const char* name = "matmul";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// What an output goes through while it is in the cache; the gradient of each is a function of its output.
enum class Activation : uint8_t { none, relu, elu, tanh, sigmoid };

/// c[i, j] = activation(c[i, j] + bias[j]) in place.
struct EpilogueKernel {
  struct Args {
    bool is_double;
    Activation activation;
    int64_t rows, width;
    void* c;
    const void* bias;  // width, or null
  };
  static constexpr const char* name = "epilogue";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
