#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// Element types that elementwise kernels compute with.
enum class Element : uint8_t { f32, f64, i32, i64 };

enum class Binary : uint8_t {
  add,
  sub,
  mul,
  div,
  minimum,     // NaN wins
  maximum,     // NaN wins
  equal,       // u8 results from here on
  less,        // a < b
  less_equal,  // a <= b
  min_is_a,    // whether a is the minimum: ties and a NaN in a say yes
  max_is_a,
};

/// How two contiguous inputs are walked for each row-major element of the output; a stride of 0 repeats.
struct Walk2 {
  int ndim;  // >= 1
  int64_t size[6], stride_a[6], stride_b[6];  // the last strides are 0 or 1
};

struct BinaryKernel {
  struct Args {
    Binary op;
    Element element;
    bool negate;    // of a u8 result
    int64_t count;  // elements of out
    const void* a;
    const void* b;
    void* out;  // may be an input of the same shape
    Walk2 walk;
  };
  static constexpr const char* name = "binary";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// out[i] = choice[i] ? a[i] : b[i]; a null input stands for zeros.
struct SelectKernel {
  struct Args {
    bool is_8_bytes;  // an element's size: 8 or 4 bytes
    bool invert;      // of choice
    int64_t count;
    const uint8_t* choice;
    const void* a;
    const void* b;
    void* out;
  };
  static constexpr const char* name = "where";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
