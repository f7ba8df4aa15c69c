#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/scatter/segment_schedule.h"

namespace tessera {

enum class SpreadOp : uint8_t {
  winner,     // grad of the segment where the row is the winner, else 0
  deviation,  // (x - center of the segment) * grad of the segment
  product,    // grad of the segment * the product of the segment's other rows and of its initial one
};

/// out[row] from the row of x and what its segment has: the backward passes that are not a plain gather.
struct SegmentSpreadKernel {
  struct Args {
    FloatType type;
    SpreadOp op;
    SegmentView plan;
    int64_t width;
    const void* x;          // rows x width, for deviation and product
    const void* grad;       // segments x width
    const void* center;     // segments x width, for deviation, of the type that is computed in
    const void* initial;    // segments x width, for product, or null
    const int32_t* winner;  // segments x width
    void* out;              // rows x width
    void* partials;         // for product: 2 x slots x width
  };
  static constexpr const char* name = "segment_spread";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
