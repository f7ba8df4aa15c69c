#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// float32 to 16-bit storage, rounded to nearest even, or back.
struct CastKernel {
  struct Args {
    bool is_f16;  // else bf16
    bool narrow;  // from float32
    int64_t count;
    const void* from;
    void* to;
  };
  static constexpr const char* name = "cast";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
