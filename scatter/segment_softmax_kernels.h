#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/scatter/segment_schedule.h"

namespace tessera {

enum class SegmentSoftmax : uint8_t {
  softmax,         // x to out, by row
  softmax_grad,    // x is the softmax, grad by row; out by row
  logsumexp,       // x to out, by segment; initial by segment or null
  logsumexp_grad,  // x, grad and lse by segment; out by row
};

struct SegmentSoftmaxKernel {
  struct Args {
    SegmentSoftmax op;
    bool is_double;
    SegmentView plan;
    int64_t width;
    const void* x;
    const void* grad;
    const void* lse;
    const void* initial;
    void* out;
    void* partials;  // slots x 2 x width
  };
  static constexpr const char* name = "segment_softmax";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
