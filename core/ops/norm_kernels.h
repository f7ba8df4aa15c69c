#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Rows of x (rows, width) to mean 0 and variance 1, then times weight plus bias; or the gradients of that, all in one walk.
struct LayerNormKernel {
  struct Args {
    bool is_double;
    int64_t rows, width;
    const void* x;
    const void* weight;  // width, or null for 1
    const void* bias;    // width, or null for 0
    double eps;
    void* out;         // forward: y; gradient: of x, or null
    double* moments;   // rows x 2: mean, 1 / standard deviation; forward writes, gradient reads
    const void* grad;  // of y; null for forward
    double* sums;      // gradient: 2 x width, sums of grad and of grad (x - mean) / deviation over all rows; or null
    double* partials;  // blocks_of(rows) x 2 x width where sums are wanted
  };
  static constexpr int64_t kBlock = 256;  // rows
  static constexpr int64_t blocks_of(int64_t rows) { return (rows + kBlock - 1) / kBlock; }
  static constexpr const char* name = "layer_norm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// Sums over all rows and inner positions of x (rows, channels, inner), in fixed blocks of rows.
struct ChannelSumsKernel {
  enum class Op : uint8_t { moments, gradients };
  struct Args {
    Op op;
    bool is_double;
    int64_t rows, channels, inner;
    const void* x;
    const void* grad;       // gradients: of y
    const double* moments;  // gradients: 2 x channels: mean, 1 / deviation
    double* out;            // 2 x channels: mean and sum (x - mean)^2; or sum grad and sum grad (x - mean) / deviation
    double* partials;       // blocks x 2 x channels
  };
  static constexpr int64_t rows_of(int64_t inner) { return inner >= 1024 ? 1 : inner > 1 ? 1024 / inner : 256; }
  static constexpr int64_t blocks_of(int64_t rows, int64_t inner) { return (rows + rows_of(inner) - 1) / rows_of(inner); }
  static constexpr const char* name = "channel_sums";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// out = (x - centre) * of_x + offset, plus grad * of_grad where grad is given; every factor by channel.
struct ChannelMapKernel {
  struct Args {
    bool is_double;
    int64_t rows, channels, inner;
    const void* x;
    const void* grad;          // or null
    const void* coefficients;  // 4 x channels: centre, of_x, offset, of_grad
    void* out;
  };
  static constexpr const char* name = "channel_map";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
