#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/scatter/reduce.h"
#include "tessera/scatter/segment_reduce_kernels.h"

namespace tessera {

/// Reduction of (outer, length, inner) to (outer, size, inner) by an index of the source's shape, whose ids were checked;
/// and its gradient, (outer, length, inner) again, when `grad` is given.
struct ScatterAlongKernel {
  struct Args {
    FloatType type;
    Reduce reduce;
    Initial content;
    int64_t outer, length, inner, size;
    const void* src;
    const int32_t* index32;  // this
    const int64_t* index64;  // or this
    const void* initial;     // unless `content` is none
    void* work;              // of out's shape, in the type that is computed in: out itself unless that has 16 bits
    int32_t* state;          // of out's shape. max, min: the winner, -1 for none; else how many came
    void* out;
    const void* grad;  // of out; null for the forward pass, which writes work, state and out
    void* grad_src;
  };
  static constexpr const char* name = "scatter_reduce_along";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// out[index[e]] += src[e], row by row, by an index whose ids were checked. `out` holds what the sums begin with; `counts`,
/// unless null, receives how many rows came to each.
struct ScatterAddKernel {
  struct Args {
    bool is_double;
    int64_t count, rows, width;
    const void* src;
    const int32_t* index32;  // this
    const int64_t* index64;  // or this
    void* out;
    int32_t* counts;
  };
  static constexpr const char* name = "scatter_add";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
