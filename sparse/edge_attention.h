#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"
#include "tessera/sparse/graph.h"

/// Attention over the edges that end at each destination, H heads of C channels, F = H C columns, head h being columns
/// [h C, (h + 1) C): scores, softmax and weighted sum in one walk along each row.
///
///     out[d, h] = sum over edges e = (s -> d) of u[e, h] softmax_d(score)[e, h] value[e, h]
///
/// The softmax is over the edges of destination d, shifted by their own largest score. u is 1, or with dropout 0 with
/// probability p and 1 / (1 - p) otherwise; the draw depends on (seed, stream, edge id, head) alone and is made again for
/// the backward pass. A destination without edges gives 0. A score of -inf beside numbers has weight 0; a head of d with a
/// score of NaN or +inf, or with scores of -inf alone, gives NaN (as `segment_softmax`), other heads and rows do not.
///
/// f32 or f64, all of one dtype; at most 128 heads. Ids of edges are the graph's: the caller's order.
/// Gradients: every floating input, exactly that of the formula; leaky_relu's derivative at 0 is the slope. No ties.
/// Memory: beyond inputs, output and gradients at most 6 numbers for each destination and head, two of which (the largest
/// score and the sum: log-sum-exp in parts) are kept between the passes, and up to five rows of columns for each 1024 edges,
/// with edges' rows (gatv2, dot) up to 128 more; nothing is stored for an edge.
/// The same bits for every thread count: a row in its own order, one of more than 4096 edges in pieces of 4096.
/// Errors: InvalidArgument for shapes, dtypes and options, naming them; Unsupported for other dtypes and more heads.
/// Schedule and sources: sparse/edge_attention_cpu.cpp.
namespace tessera {

struct EdgeAttentionOptions {
  Tensor edge{};        ///< what each edge adds, by edge id; each function says where. Undefined: nothing
  double slope = 0.2;   ///< of leaky_relu below 0; 0 or more
  double dropout = 0;   ///< p, of the weights
  Philox random{0, 0};  ///< `generator.next()`, when dropout is not 0
};

/// Graph attention (Velickovic et al., arXiv 1710.10903), its scores given as what each side adds:
///
///     score[e, h] = leaky_relu(a_src[s, h] + a_dst[d, h] + edge[e, h]),  value[e, h] = x[s, h]
///
/// x (num_src, F); a_src (num_src, H), a_dst (num_dst, H), edge (E, H); out (num_dst, F).
Tensor gat_attention(const Graph& graph, const Tensor& x, const Tensor& a_src, const Tensor& a_dst,
                     const EdgeAttentionOptions& options = {});

/// GATv2 (Brody et al., arXiv 2105.14491):
///
///     score[e, h] = sum over c of att[h, c] leaky_relu(x_src[s, h, c] + x_dst[d, h, c] + edge[e, h, c]),  value = x_src[s]
///
/// x_src (num_src, F), x_dst (num_dst, F), att (H, C), edge (E, F); out (num_dst, F). The gradient of edge is (E, F).
Tensor gatv2_attention(const Graph& graph, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                       const EdgeAttentionOptions& options = {});

/// Scaled dot products (Vaswani et al., arXiv 1706.03762; edges as in Shi et al., arXiv 2009.03509):
///
///     score[e, h] = <q[d, h], k[s, h] + edge[e, h]> / sqrt(C),  value[e, h] = v[s, h] + edge[e, h]
///
/// q (num_dst, F), k and v (num_src, F), edge (E, F); out (num_dst, F). The gradient of edge is (E, F).
Tensor dot_attention(const Graph& graph, const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                     const EdgeAttentionOptions& options = {});

/// The weights alone, softmax_d(score) without dropout: (E, H) by edge id. No gradient.
Tensor gat_attention_weights(const Graph& graph, const Tensor& a_src, const Tensor& a_dst,
                             const EdgeAttentionOptions& options = {});
Tensor gatv2_attention_weights(const Graph& graph, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                               const EdgeAttentionOptions& options = {});
Tensor dot_attention_weights(const Graph& graph, const Tensor& q, const Tensor& k, int64_t heads,
                             const EdgeAttentionOptions& options = {});

}  // namespace tessera
