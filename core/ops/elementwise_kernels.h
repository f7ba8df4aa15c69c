#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

enum class Elementwise : uint8_t {
  add,         // a + b
  sub,         // a - b
  mul,         // a * b
  scale,       // a * factor
  add_bias,    // a[i, j] + b[j]
  relu,        // max(a, 0)
  relu_grad,   // b where a > 0, else 0
};

struct ElementwiseKernel {
  struct Args {
    Elementwise op;
    bool is_double;
    int64_t count;  // elements
    int64_t width;  // columns, for add_bias
    const void* a;
    const void* b;
    void* out;  // may be a
    double factor;
  };
  static constexpr const char* name = "elementwise";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
