#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// A window along one dimension: elements begin, begin + dilation, .. below end, all inside the image.
struct Window {
  int32_t begin, end;
  int32_t count;  // that a mean divides by
};

/// Planes on the calling thread, each an image of its own. The window of an output is the product of its row's and its
/// column's.
struct PoolKernel {
  enum class Op : uint8_t { max, average, max_gradient, average_gradient };
  struct Args {
    Op op;
    bool is_double;
    int64_t planes;
    int64_t in_size[2], out_size[2];  // rows, columns
    const Window* rows;               // out_size[0] of them
    const Window* columns;            // out_size[1]
    int32_t dilation[2];
    const void* from;     // x, or the gradient of out
    void* to;             // out, or the gradient of x
    int32_t* place;       // max: where in its plane each was taken from, (planes, out), written unless null; gradient: read
    double* line;         // in_size[1] + 1
    int32_t* line_place;  // max: in_size[1]
  };
  static constexpr const char* name = "pool2d";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
