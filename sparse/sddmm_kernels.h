#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/sparse/schedule.h"

namespace tessera {

/// out[edge] = dst_scale[d] * src_scale[s] * dot(a[d], b[s]) for the edges of the graph's schedule.
struct SddmmKernel {
  struct Args {
    bool is_double;
    bool mean;  // divide by the number of edges of the row
    int64_t num_edges, width;
    const int64_t* rowptr;
    const int32_t* col;
    const int64_t* edge_id;  // null: positions
    const Chunk* chunks;
    int64_t num_chunks;
    const void* a;  // rows x width
    const void* b;  // b_rows x width
    int64_t b_rows;
    const void* src_scale;  // or null
    const void* dst_scale;  // or null
    void* out;              // by edge id
  };
  static constexpr const char* name = "sddmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
