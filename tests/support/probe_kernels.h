#pragma once

#include "tessera/core/isa.h"

namespace tessera::test {

/// Reports the instruction set that it was compiled for.
struct ProbeKernel {
  struct Args {
    Isa* compiled_for;
    int* vector_bytes;
  };
  static constexpr const char* name = "probe";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera::test
