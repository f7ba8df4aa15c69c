#pragma once

#include <cstdint>

#include "tessera/core/isa.h"

namespace tessera {

/// One step of a long short-term memory, for all rows. Gates stand side by side in a row of 4 x hidden: i, f, g, o.
struct LstmStepKernel {
  struct Args {
    bool is_double;
    int64_t rows, hidden;
    void* gates;           // rows x 4 hidden: forward: before (in) and after (out) activation; backward: after, read
    const void* recurrent; // forward: what the last state adds before activation; backward: gradient of h from the next step
    const void* c_before;  // rows x hidden; null for the first step: zeros
    void* c;               // rows x hidden; forward: written; backward: read
    void* h;               // forward: written
    const void* grad_h;    // backward: of this step's output; null for forward
    void* grad_c;          // backward: of c from the next step (in), of c_before (out)
    bool last_step;        // backward: grad_c holds nothing yet
    void* grad_gates;      // backward: before activation, written
  };
  static constexpr const char* name = "lstm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
