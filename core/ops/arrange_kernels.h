#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// to[i * to_row + j] = from[i + j * from_row] for i < rows, j < columns, on the calling thread.
struct TransposeKernel {
  struct Args {
    int64_t rows, columns;
    const uint32_t* from;
    int64_t from_row;
    uint32_t* to;
    int64_t to_row;
  };
  static constexpr const char* name = "transpose";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// to[i * width + j] = from[i] for i < rows, j < width, on the calling thread.
struct SpreadKernel {
  struct Args {
    int64_t rows, width;
    const uint32_t* from;
    uint32_t* to;
  };
  static constexpr const char* name = "expand";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
