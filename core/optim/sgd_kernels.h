#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Elements [begin, end) of one parameter.
struct SgdKernel {
  struct Args {
    bool is_double;
    bool nesterov;
    int64_t begin, end;
    void* w;
    const void* g;
    void* b;  // null without momentum
    double lr, momentum, weight_decay;
  };
  static constexpr const char* name = "sgd";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
