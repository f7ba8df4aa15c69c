#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Copies rows of bytes by index. Stops early and sets `outside` when an id is not in [0, x_rows).
struct GatherKernel {
  struct Args {
    int64_t count, x_rows, row_bytes;
    const void* x;
    const int32_t* index32;  // this
    const int64_t* index64;  // or this
    void* out;
    bool* outside;
  };
  static constexpr const char* name = "gather";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
