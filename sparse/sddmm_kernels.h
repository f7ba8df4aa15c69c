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

/// Rows of the two sides joined by edge, and sums of edges' rows by node.
struct SddmmRowsKernel {
  enum class Form : uint8_t {
    add,   // out[edge] = a[d] + b[s]
    sub,   // out[edge] = a[d] - b[s]
    mul,   // out[edge] = a[d] * b[s]
    dots,  // out[edge, h] = sum over c of a[d, h, c] * b[s, h, c]
    pull,  // out[d] = factor * sum over edges of a[edge] * b[s], a by edge id; b null: of a[edge]; heads: a[edge, h] * b[s,
           // h, c]
  };
  struct Args {
    bool is_double;
    Form form;
    int64_t num_edges, heads, channels;  // pull without heads: 0 heads of `channels`
    const int64_t* rowptr;
    const int32_t* col;
    const int64_t* edge_id;  // null: positions
    const Chunk* chunks;
    int64_t num_chunks;
    const Hub* hubs;
    int64_t num_hubs;
    const void* a;
    const void* b;
    double factor;
    void* out;
    void* partials;  // pull: slots x width
  };
  static constexpr const char* name = "sddmm_rows";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
