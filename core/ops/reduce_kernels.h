#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

enum class ReduceOp : uint8_t {
  sum,
  sum_abs,
  sum_square,
  sum_square_from,  // of the distance from centre
};

/// out[o, n] = finish(sum over i of f(x[o, i, n])), where finish multiplies by factor and may take the root.
struct ReduceKernel {
  struct Args {
    ReduceOp op;
    bool is_double;
    bool root;
    int64_t outer, length, inner;
    const void* x;
    const void* centre;  // (outer, inner), for sum_square_from
    void* out;           // (outer, inner)
    double factor;
    double* partials;  // partials_of(outer, length, inner) of them
  };
  /// Lines are cut into blocks of this many elements, whatever the thread count.
  static constexpr int64_t block_of(int64_t inner) { return inner == 1 ? 1 << 14 : 1 << 10; }
  static constexpr int64_t partials_of(int64_t outer, int64_t length, int64_t inner) {
    return length <= block_of(inner) ? 0 : outer * inner * ((length + block_of(inner) - 1) / block_of(inner));
  }
  static constexpr const char* name = "reduce";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

enum class ExtremeOp : uint8_t { max, min, max_abs };

/// The first largest (smallest) element of each line, a NaN before all, and where in the line it stands.
struct ExtremeKernel {
  struct Args {
    ExtremeOp op;
    bool is_double;
    int64_t outer, length, inner;  // length >= 1
    const void* x;
    void* out;       // (outer, inner), or null
    int32_t* place;  // (outer, inner)
    void* partial_values;      // ReduceKernel::partials_of(...) of each
    int32_t* partial_places;
  };
  static constexpr const char* name = "extreme";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
