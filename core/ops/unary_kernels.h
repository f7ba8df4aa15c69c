#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// f(x), with parameters p and q; the gradient is computed from the tensor named beside it, its "saved" one.
enum class Unary : uint8_t {
  scale,       // x * p                                   (no saved tensor: gradient is scale)
  shift,       // x + p                                   (gradient is the identity)
  exp,         // y
  log,         // x
  sqrt,        // y
  tanh,        // y
  sigmoid,     // y
  relu,        // y
  leaky_relu,  // x > 0 ? x : p x;                        x
  elu,         // x > 0 ? x : p (e^x - 1);                y
  gelu,        // x Phi(x);                               x
  gelu_tanh,   // its approximation by tanh;              x
  softplus,    // ln(1 + e^x);                            x
  abs,         // x
  sign,        // no gradient
  square,      // x
  clamp,       // to [p, q];                              x
  pow,         // x^p;                                    x
};

struct UnaryKernel {
  struct Args {
    Unary op;
    bool is_double;
    int64_t count;
    const void* x;     // or, for the gradient, the saved tensor
    const void* grad;  // null: f(x); else: grad * f'
    void* out;         // may be x or grad
    double p, q;
  };
  static constexpr const char* name = "unary";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
