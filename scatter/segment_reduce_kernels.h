#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/scatter/segment_schedule.h"

namespace tessera {

/// What is added up or chosen from: the rows themselves, or the squares of their distances from a row of the segment.
enum class SegmentOp : uint8_t { sum, square, mul, best };

/// What an output holds before: nothing; a row that stays where a segment is empty; a row that takes part.
enum class Initial : uint8_t { none, keep, include };

/// out[s] = reduction of the segment's rows of x, by the plan's schedule. Sums and products are kept in float for 16-bit
/// elements. `center`, `partials` have the type that is computed in (float, or double for f64).
struct SegmentReduceKernel {
  struct Args {
    FloatType type;
    SegmentOp op;
    bool smallest;  // best: the least instead of the largest
    bool divide;    // by the number of rows (and of the initial one) less `less`, at least 1
    int64_t less;
    Initial content;
    SegmentView plan;
    int64_t width;
    const void* x;             // rows x width
    const void* center;        // square: segments x width
    const void* initial;       // segments x width, unless `content` is none
    void* out;                 // segments x width
    int32_t* winner;           // best: segments x width, place within the segment, -1 for none; or null
    void* partials;            // slots x width
    int32_t* partial_winners;  // slots x width
  };
  static constexpr const char* name = "segment_reduce";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
