#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/sparse/schedule.h"

namespace tessera {

/// out[d] = row factor * sum over the row's edges of edge factor * x[source], by the graph's schedule.
/// Row factor: dst_scale[d], divided by the number of edges for a mean. Edge factor: weight * src_scale[source].
struct SpmmKernel {
  struct Args {
    bool is_double;
    bool mean;
    int64_t rows, num_edges, width;
    const int64_t* rowptr;
    const int32_t* col;
    const int64_t* edge_id;  // null: positions
    const Chunk* chunks;
    int64_t num_chunks;
    const Hub* hubs;
    int64_t num_hubs;
    const void* x;  // x_rows x width
    int64_t x_rows;
    const void* weight;     // by edge id, or null
    const void* src_scale;  // or null
    const void* dst_scale;  // or null
    void* out;              // rows x width
    void* partials;         // slots x width
  };
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
