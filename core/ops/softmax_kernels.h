#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

enum class Softmax : uint8_t { softmax, log_softmax, softmax_grad, log_softmax_grad };

struct SoftmaxKernel {
  struct Args {
    Softmax op;
    bool is_double;
    int64_t rows, width;
    const void* x;     // input, or the output y for the gradients
    const void* grad;  // of y, for the gradients
    void* out;
  };
  static constexpr const char* name = "softmax";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// Mean negative log-likelihood of chosen rows of logits, and its gradient, in one pass each over those rows.
struct CrossEntropyKernel {
  struct Args {
    bool is_double;
    int64_t rows, width;
    const void* x;           // logits (rows, width)
    const int32_t* labels;   // rows
    const int32_t* chosen;   // count, or null for all rows
    int64_t count;
    double* loss;            // forward: sum over chosen rows
    const int32_t* times;    // gradient: how often each row was chosen, or null for once each
    double factor;           // gradient: of each chosen row
    void* grad;              // gradient: (rows, width), or null for forward
  };
  static constexpr const char* name = "cross_entropy";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
