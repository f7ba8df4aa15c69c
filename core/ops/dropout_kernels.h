#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/core/random.h"

namespace tessera {

struct DropoutKernel {
  struct Args {
    bool is_double;
    int64_t count;
    const void* x;
    void* out;
    double scale;
    uint32_t threshold;  // an element is kept when its word is at or above it
    Philox random;
  };
  static constexpr const char* name = "dropout";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
