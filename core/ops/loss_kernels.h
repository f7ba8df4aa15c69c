#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Softmax cross-entropy, or negative log-likelihood of given logarithms, of chosen rows: losses, then the gradient.
struct CrossEntropyKernel {
  struct Args {
    bool is_double;
    bool is_nll;  // x holds log-probabilities
    int64_t rows, width;
    const void* x;          // (rows, width)
    const int32_t* labels;  // rows; -1 rows are left out
    const int32_t* chosen;  // count, or null for all rows in order
    int64_t count;
    const double* weights;  // of classes, or null for 1 each
    double smoothing;
    double* losses;             // forward: count, each times its label's weight
    const double* row_factors;  // gradient: rows, or null: factor for each
    double factor;
    void* grad;  // gradient: (rows, width), or null for forward
  };
  static constexpr const char* name = "cross_entropy";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

enum class PairLoss : uint8_t { bce_with_logits, mse, l1, smooth_l1 };

/// A loss of each pair (x, target). Pairs whose target is NaN are left out when `skip_nan`.
struct PairLossKernel {
  struct Args {
    PairLoss op;
    bool is_double;
    bool skip_nan;
    int64_t count;
    int64_t width;  // of positive_weights
    const void* x;
    const void* target;
    const void* positive_weights;  // width, or null for 1
    double beta;                   // of smooth_l1
    double* sum;                   // forward: of the losses, and how many were taken
    int64_t* taken;
    void* out;              // losses, or the gradient by x: count; or null
    const void* grad;       // of each loss: count, or null: factor for each
    double factor;
    bool is_gradient;
  };
  static constexpr const char* name = "pair_loss";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
