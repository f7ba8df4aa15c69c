#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Elements [begin, end) of one parameter.
struct AdamKernel {
  struct Args {
    bool is_double;
    int64_t begin, end;
    void* w;
    const void* g;
    void* m;
    void* v;
    double beta1, beta2, eps;
    double weight_decay;     // added to the gradient, times w
    double shrink;           // of w, before the update
    double step_size;        // lr / (1 - beta1^t)
    double inverse_root;     // 1 / sqrt(1 - beta2^t)
  };
  static constexpr const char* name = "adam";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
