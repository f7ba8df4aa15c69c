#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/scatter/segment_schedule.h"
#include "tessera/sparse/schedule.h"

namespace tessera {

/// What the kernels of spmm have in common: a graph and its schedule, x, what multiplies its rows, and the result.
/// x and out have `type`; weight, scales, bias and partials have what it is computed in: double for f64, else float.
struct SpmmArgs {
  FloatType type;
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
  const void* weight;     // edges x heads, by edge id, or null
  int64_t heads;          // each has width / heads columns, one after the other
  const void* src_scale;  // or null
  const void* dst_scale;  // or null
  bool mean;              // divide by the number of edges of the row
  const void* bias;       // width, or null: added to each row of the result
  bool relu;              // then what is below 0 becomes 0
  void* out;              // rows x width
  void* partials;         // slots x width
};

/// out[d] = row factor * sum over the row's edges of edge factor * x[source], by the graph's schedule; then bias and relu.
/// f32 and f64, any number of heads.
/// Row factor: dst_scale[d], divided by the number of edges for a mean. Edge factor: weight * src_scale[source].
struct SpmmKernel {
  using Args = SpmmArgs;
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// The same for 16-bit rows.
struct SpmmHalfKernel {
  using Args = SpmmArgs;
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// The same for all types, where each head has a multiple of 4 columns: all heads at once.
struct SpmmHeadsKernel {
  using Args = SpmmArgs;
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// Sources of a block (sparse/source_blocks.h).
inline constexpr int64_t kSourceBlock = int64_t{1} << 14;

/// The edges that a block of sources has to one row: so many, and whether the row has none in earlier blocks, or later ones.
struct Run {
  int32_t row;
  uint32_t edges : 30, first : 1, last : 1;
};

/// Runs [run_begin, run_end) of a block; the first one's edges start at edge_begin.
struct RunChunk {
  int64_t edge_begin, run_begin, run_end;
};

/// The same as SpmmKernel for f32 without weights, block of sources by block of sources. Every row has a first and a last
/// run, of no edges if need be.
struct SpmmBlockedKernel {
  struct Args {
    SpmmArgs spmm;
    const uint16_t* source;
    const Run* runs;
    const RunChunk* chunks;
    const int64_t* block_chunks;
    int64_t num_blocks;
    float* panel;  // kSourceBlock x kPanel
  };
  static constexpr int64_t kPanel = 64;  // columns that a block is walked for at a time
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// out[edge, h] = row factor * src_scale[s] * dot(grad[d], x[s]) over the columns of head h: the gradient of weights per
/// head.
struct HeadDotsKernel {
  struct Args {
    bool is_double;
    bool mean;  // divide by the number of edges of the row
    int64_t num_edges, width, heads;
    const int64_t* rowptr;
    const int32_t* col;
    const int64_t* edge_id;  // null: positions
    const Chunk* chunks;
    int64_t num_chunks;
    const void* grad;  // rows x width
    const void* x;     // x_rows x width
    int64_t x_rows;
    const void* src_scale;  // or null
    const void* dst_scale;  // or null
    void* out;              // edges x heads, by edge id
  };
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// out[d] = dst_scale[d] * the largest, or smallest, of edge factor * x[source]; then bias and relu. Among equals the first
/// edge of the row wins; a NaN wins over numbers.
struct SpmmMaxKernel {
  struct Args {
    SpmmArgs spmm;
    bool smallest;
    int32_t* winner;           // rows x width: place of the winning edge in its row, -1 in an empty row; or null
    int32_t* partial_winners;  // slots x width, where winners are wanted
  };
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

/// The way back from the rows of a maximum to the edges that won. grad: rows x width, of `type`.
struct SpmmMaxGradKernel {
  struct Args {
    FloatType type;
    int64_t rows, width, heads;
    const int64_t* rowptr;
    const int32_t* col;
    const int64_t* edge_id;  // null: positions
    const void* grad;
    const int32_t* winner;
    const void* x;          // x_rows x width, for weight_grad
    const void* weight;     // for x_grad, or null
    const void* src_scale;  // or null
    const void* dst_scale;  // or null
    int64_t x_rows;
    void* x_grad;       // x_rows x width of the type that is computed in, zeros before; or null
    void* weight_grad;  // edges x heads, zeros before; or null
  };
  static constexpr const char* name = "spmm";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
