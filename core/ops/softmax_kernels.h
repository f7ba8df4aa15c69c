#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

enum class Softmax : uint8_t { softmax, log_softmax, softmax_grad, log_softmax_grad };

/// Of each line of (outer, length, inner).
struct SoftmaxKernel {
  struct Args {
    Softmax op;
    bool is_double;
    int64_t outer, length, inner;
    const void* x;     // input, or the output y for the gradients
    const void* grad;  // of y, for the gradients
    void* out;
  };
  static constexpr const char* name = "softmax";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
