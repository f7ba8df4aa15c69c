#pragma once

#include <cstdint>

#include "tessera/core/isa.h"
#include "tessera/core/random.h"
#include "tessera/sparse/schedule.h"

namespace tessera {

/// What an edge scores; `own` is the row's side, `other` the side that is gathered, whichever way the graph is walked.
enum class Scoring : uint8_t {
  additive,  // leaky_relu(own[h] + other[h] + edge[h])
  gatv2,     // sum over c of att[h, c] * leaky_relu(own[h, c] + other[h, c] + edge[h, c])
  dot,       // scale * sum over c of q[h, c] * (k[h, c] + edge[h, c]); values are value[h, c] + edge[h, c]
};

enum class AttentionPass : uint8_t {
  forward,       // rows are destinations: out, norm
  weights,       // rows are destinations: out, by edge id
  backward_dst,  // rows are destinations: terms, grad_own, grad_att
  backward_src,  // rows are sources: grad_own, grad_value, grad_edge
};

/// Softmax attention over the edges of each destination. F = heads x channels; S = heads for additive scores, else F.
struct EdgeAttentionKernel {
  struct Args {
    bool is_double;
    Scoring scoring;
    AttentionPass pass;
    int64_t heads, channels;
    int64_t num_edges;
    const int64_t* rowptr;
    const int32_t* col;
    const int64_t* edge_id;  // null: positions
    const Chunk* chunks;
    int64_t num_chunks;
    const Hub* hubs;
    int64_t num_hubs;
    int64_t other_rows;
    const void* own;    // rows x S
    const void* other;  // other_rows x S, additive: rows of other_stride elements
    int64_t other_stride;
    const void* edge;  // edges x S, by edge id; or null
    const void* att;   // F; gatv2
    double slope, scale;
    const void* value;  // F a row: gathered, backward_src: the row's own; null in a forward pass that wants norm alone
    const void* grad;   // F a row: the row's own, backward_src: gathered
    const void* norm;   // destinations x 2 heads: what scores are shifted by, 1 / sum of exp(score - shift)
    void* terms;        // destinations x 4 heads: a_dst where additive, norm, D
    bool drops;         // an edge's head is kept when its word is at or above the threshold
    uint32_t threshold;
    double kept_scale;
    Philox random;
    void* norm_out;    // forward: rows x 2 heads
    void* out;         // forward: rows x F; weights: edges x heads
    void* grad_own;    // rows x S
    void* grad_value;  // rows x F
    void* grad_edge;   // edges x S, by edge id; or null
    void* grad_att;    // (chunks + hubs) x F, zeros before: partial sums
    void* states;      // (chunks + slots) x (state_size + room_size)
  };

  static constexpr int64_t kMaxHeads = 128;

  /// Elements of what is summed up along a row.
  [[gnu::always_inline]] static int64_t state_size(const Args& k) {
    const int64_t width = k.heads * k.channels, side = k.scoring == Scoring::additive ? k.heads : width;
    switch (k.pass) {
      case AttentionPass::forward: return 2 * k.heads + width;
      case AttentionPass::weights: return 0;
      case AttentionPass::backward_dst: return 2 * k.heads + (k.scoring == Scoring::gatv2 ? 4 : 2) * side;
      case AttentionPass::backward_src: return width + side;
    }
    return 0;
  }
  /// Elements that follow it: room for a block's rows with their edges' added.
  [[gnu::always_inline]] static int64_t room_size(const Args& k) {
    if (k.edge == nullptr || k.scoring == Scoring::additive) return 0;
    return (k.scoring == Scoring::dot ? 2 : 1) * block_edges(k) * k.heads * k.channels;
  }
  /// Edges taken together: few enough that their rows stay in the first-level cache, four or more.
  [[gnu::always_inline]] static int64_t block_edges(const Args& k) {
    const int64_t by_width = 4096 / (k.heads * k.channels + 1), by_heads = kBlockScores / k.heads;
    const int64_t n = by_width < by_heads ? by_width : by_heads;
    return n < 4 ? 4 : n < 64 ? n / 4 * 4 : 64;
  }
  static constexpr int64_t kBlockScores = 4 * kMaxHeads;

  static constexpr const char* name = "edge_attention";
  template <Isa>
  static void cpu(const Args& args);
  static inline void (*cuda)(const Args&) = nullptr;
};

}  // namespace tessera
