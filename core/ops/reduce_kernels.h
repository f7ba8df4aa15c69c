#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Column sums of rows [begin, end) of x (N, width), added in double (or in blocks of rows) into sums[width].
struct SumRowsKernel {
  struct Args {
    bool is_double;
    const void* x;
    int64_t rows, width;
    void* out;         // width
    double* partials;  // blocks x width, blocks = ceil(rows / kRowBlock)
  };
  static constexpr int64_t kRowBlock = 1024;
  static constexpr const char* name = "sum_rows";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// Sum of all elements, in fixed blocks.
struct SumKernel {
  struct Args {
    bool is_double;
    const void* x;
    int64_t count;
    double* out;
  };
  static constexpr const char* name = "sum";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
