// Attention over the edges of each destination, on CPUs: scores, softmax and weighted sum in one walk along a row, and the
// gradients in two walks, without a value kept for an edge.
//
// Forward. A row's edges are taken in blocks of up to 64 whose gathered rows stay in the first-level cache. A block's scores
// go to a small buffer [edge][head]; exponentials run over it in full vectors, whatever the number of heads. The row keeps
// its largest score m, the sum l of exp(score - m) and the weighted sum of values; when a block raises m, both sums are
// scaled by exp(old m - new m) (online softmax: Milakov and Gimelshein, arXiv 1805.02867). What is kept for the backward
// pass is log-sum-exp, m + ln l, as its two parts: added up, a large m would take the digits of ln l with it.
//
// Backward. With weight A = exp(score - m) / l, dropout factor u (0 or 1 / (1 - p)), g the gradient of the row's result and
// Q = <g[d], value[s]>, the gradient of a score is
//
//     A (u Q - D),   D = sum over the row's edges of A u Q.
//
// It is linear in D, so a walk along destinations sums what is multiplied by D apart from the rest, and neither walks twice
// nor needs the result of the forward pass: sum of A (u Q - D0) y - (D - D0) sum of A y, where y is what the score's
// derivative is made of and D0 is the first block's own D: most rows have one block, and nothing cancels.
// The second walk goes along sources through the transpose, with D known, and sums gradients of the values and of the
// sources' side of the scores; gradients of edges are written there. Scores and dropout draws are computed again each time.
// Each row has one writer, so nothing is atomic. A hub's pieces leave their sums as partial results, joined in order.
//
// Cost: forward, one gather of (values, scores); backward, one gather of the same by destination and one of the gradient
// and 4 numbers a head by source. As in FusedMM (arXiv 2011.06391) and FlashAttention (arXiv 2205.14135), for sparse rows.

#include "tessera/core/parallel.h"
#include "tessera/core/philox_lanes_kernels.h"
#include "tessera/core/simd.h"
#include "tessera/sparse/edge_attention_kernels.h"
#include "tessera/sparse/edge_blocks_kernels.h"

namespace tessera {
namespace {

using namespace edge_blocks;
using Args = EdgeAttentionKernel::Args;

constexpr int64_t kScores = EdgeAttentionKernel::kBlockScores;
constexpr int64_t kForkElements = int64_t{1} << 17;  // edges x width below which a second thread costs more than it brings

/// What a block of edges computes, [edge][head] each.
template <class T>
struct Buffers {
  T score[kScores], weight[kScores], product[kScores], factor[kScores];
};

template <class T>
struct Walk {
  const Args& k;
  const int64_t heads = k.heads, channels = k.channels, width = heads * channels;
  const bool additive = k.scoring == Scoring::additive, by_source = k.pass == AttentionPass::backward_src;
  const int64_t side = additive ? heads : width, block = EdgeAttentionKernel::block_edges(k);
  const int64_t state_size = EdgeAttentionKernel::state_size(k);
  const T* const att = static_cast<const T*>(k.att);
  const T slope = T(k.slope);

  static const T* elements(const void* p) { return static_cast<const T*>(p); }
  static T* elements(void* p) { return static_cast<T*>(p); }

  Rows<T> nodes(const void* base, int64_t stride, int64_t begin) const { return {elements(base), stride, k.col + begin}; }
  Rows<T> edges(int64_t begin) const {
    if (k.edge_id != nullptr) return {elements(k.edge), side, nullptr, k.edge_id + begin};
    return {elements(k.edge) + begin * side, side};
  }
  int64_t id(int64_t position) const { return k.edge_id != nullptr ? k.edge_id[position] : position; }

  /// Scores of the edges at [begin, begin + n) of row d, and the rows that they were made from.
  Rows<T> scores(int64_t d, int64_t begin, int64_t n, T* room, T* score) const {
    Rows<T> far = nodes(k.other, k.other_stride, begin);
    const T* own = elements(k.own) + d * side;
    if (additive) {
      const T s = slope;
      for (int64_t i = 0; i < n; ++i) {
        const T* x = far[i];
        const T* e = k.edge != nullptr ? edges(begin)[i] : nullptr;
        T* to = score + i * heads;
        for_columns<T>(0, heads, [=]<int L>(int64_t h) {
          simd::Vec<T, L> z = get<L>(own + h) + get<L>(x + h);
          if (e != nullptr) z += get<L>(e + h);
          put<L>(to + h, z > simd::Vec<T, L>{} ? z : z * s);
        });
      }
      return far;
    }
    if (k.scoring == Scoring::dot) {
      Rows<T> near{own, 0};
      if (k.edge != nullptr) (by_source ? near : far) = mixed(n, width, by_source ? near : far, edges(begin), room);
      dots(n, heads, channels, near, far, T(k.scale), score);
      return far;
    }
    if (k.edge != nullptr) far = mixed(n, width, far, edges(begin), room);
    bent_dots(n, heads, channels, Rows<T>{own, 0}, far, att, slope, score);
    return far;
  }

  /// The rows of values, those of the row's own where the walk goes along sources.
  Rows<T> values(int64_t d, int64_t begin, int64_t n, T* room) const {
    const Rows<T> plain = by_source ? Rows<T>{elements(k.value) + d * width, 0} : nodes(k.value, width, begin);
    if (k.edge == nullptr || k.scoring != Scoring::dot) return plain;
    return mixed(n, width, plain, edges(begin), room + block * width);
  }

  /// The factors of dropout: 0 where edge i's head h is dropped, else 1 / (1 - p).
  void draw(int64_t begin, int64_t n, T* factor) const {
    const int64_t quads = (heads + 3) / 4, count = n * quads;
    for (int64_t first = 0; first < count; first += kPhiloxLanes) {
      uint64_t counter[kPhiloxLanes];
      uint32_t words[4 * kPhiloxLanes];
      for (int64_t j = 0; j < kPhiloxLanes; ++j) {
        const int64_t at = first + j < count ? first + j : count - 1;
        counter[j] = uint64_t(id(begin + at / quads) * quads + at % quads);
      }
      philox_lanes(k.random, counter, words);
      for (int64_t j = 0; j < kPhiloxLanes && first + j < count; ++j) {
        const int64_t i = (first + j) / quads, h = (first + j) % quads * 4;
        for (int64_t w = 0; w < 4 && h + w < heads; ++w)
          factor[i * heads + h + w] = words[w * kPhiloxLanes + j] >= k.threshold ? T(k.kept_scale) : T(0);
      }
    }
  }
  static void multiply(int64_t count, const T* factor, T* x) {
    for (int64_t j = 0; j < count; ++j) x[j] *= factor[j];
  }

  /// State: largest score, sum of exponentials (heads each), weighted sum of values (width).
  void forward(int64_t d, int64_t begin, int64_t n, T* state, Buffers<T>& b) const {
    T *m = state, *l = m + heads, *sum = l + heads, *room = sum + width;
    scores(d, begin, n, room, b.score);
    T before[EdgeAttentionKernel::kMaxHeads], shift[EdgeAttentionKernel::kMaxHeads];
    for (int64_t h = 0; h < heads; ++h) before[h] = m[h];
    largest(n, heads, b.score, m);
    bool raised = false;
    for (int64_t h = 0; h < heads; ++h) {
      shift[h] = shift_of(m[h]);
      raised |= m[h] != before[h];
    }
    if (raised) {
      for (int64_t h = 0; h < heads; ++h) before[h] = simd::exp(before[h] - shift[h]);
      rescale(before, l, sum);
    }
    exponentials(n, heads, b.score, shift);
    add_edges(n, heads, b.score, l);
    if (k.value == nullptr) return;
    if (k.drops) {
      draw(begin, n, b.factor);
      multiply(n * heads, b.factor, b.score);
    }
    add_rows(n, heads, channels, b.score, values(d, begin, n, room), sum);
  }
  void rescale(const T* factor, T* l, T* sum) const {
    for (int64_t h = 0; h < heads; ++h) {
      const T f = factor[h];
      l[h] *= f;
      for_columns<T>(h * channels, (h + 1) * channels, [=]<int L>(int64_t c) { put<L>(sum + c, get<L>(sum + c) * f); });
    }
  }
  void forward_join(const T* part, T* state) const {
    T *m = state, *l = m + heads, *sum = l + heads;
    T old_factor[EdgeAttentionKernel::kMaxHeads], factor[EdgeAttentionKernel::kMaxHeads];
    for (int64_t h = 0; h < heads; ++h) {
      const T most = part[h] > m[h] ? part[h] : m[h], shift = shift_of(most);
      old_factor[h] = simd::exp(m[h] - shift);
      factor[h] = simd::exp(part[h] - shift);
      m[h] = most;
    }
    rescale(old_factor, l, sum);
    const T* values = part + 2 * heads;
    for (int64_t h = 0; h < heads; ++h) {
      const T f = factor[h];
      l[h] += f * part[heads + h];
      for_columns<T>(h * channels, (h + 1) * channels,
                     [=]<int L>(int64_t c) { put<L>(sum + c, get<L>(sum + c) + f * get<L>(values + c)); });
    }
  }
  void forward_end(int64_t d, const T* state) const {
    const T *m = state, *l = m + heads, *sum = l + heads;
    const bool empty = k.rowptr[d] == k.rowptr[d + 1];
    T *shift = elements(k.norm_out) + d * 2 * heads, *factor = shift + heads;
    for (int64_t h = 0; h < heads; ++h) {
      shift[h] = shift_of(m[h]);
      factor[h] = empty ? T(0) : T(1) / l[h];
    }
    if (k.value == nullptr) return;
    T* out = elements(k.out) + d * width;
    for (int64_t h = 0; h < heads; ++h) {
      const T f = factor[h];
      for_columns<T>(h * channels, (h + 1) * channels, [=]<int L>(int64_t c) { put<L>(out + c, get<L>(sum + c) * f); });
    }
  }

  Rows<T> norm_of(int64_t d) const { return {elements(k.norm) + d * 2 * heads, 0}; }

  void weights(int64_t d, int64_t begin, int64_t n, T* state, Buffers<T>& b) const {
    scores(d, begin, n, state, b.score);
    softmax_weights(n, heads, b.score, norm_of(d), b.weight);
    for (int64_t i = 0; i < n; ++i) {
      T* out = elements(k.out) + id(begin + i) * heads;
      for (int64_t h = 0; h < heads; ++h) out[h] = b.weight[i * heads + h];
    }
  }

  /// product = A u Q, weight = A and factor = u, where `near` and `far` are the rows of g and of the values.
  void gradients_of_weights(int64_t begin, int64_t n, Rows<T> near, Rows<T> far, Rows<T> norm, Buffers<T>& b) const {
    softmax_weights(n, heads, b.score, norm, b.weight);
    dots(n, heads, channels, near, far, T(1), b.product);
    if (k.drops) {
      draw(begin, n, b.factor);
      multiply(n * heads, b.factor, b.product);
    }
    multiply(n * heads, b.weight, b.product);
  }
  /// product[i, h] -= weight[i, h] * delta[i][h]
  void subtract(int64_t n, Rows<T> delta, Buffers<T>& b) const {
    for (int64_t i = 0; i < n; ++i) {
      const T *di = delta[i], *wi = b.weight + i * heads;
      T* pi = b.product + i * heads;
      for_columns<T>(0, heads, [=]<int L>(int64_t h) { put<L>(pi + h, get<L>(pi + h) - get<L>(wi + h) * get<L>(di + h)); });
    }
  }

  /// State: D, D0 (heads each), sums of A (u Q - D0) y and of A y (side each); gatv2: the same for y = att's derivative.
  void backward_dst(int64_t d, int64_t begin, int64_t n, T* state, Buffers<T>& b, bool first) const {
    const int64_t count = n * heads;
    T *delta = state, *pivot = delta + heads, *sums = pivot + heads;
    T* room = sums + (k.scoring == Scoring::gatv2 ? 4 : 2) * side;
    const Rows<T> far = scores(d, begin, n, room, b.score);
    gradients_of_weights(begin, n, {elements(k.grad) + d * width, 0}, values(d, begin, n, room), norm_of(d), b);
    add_edges(n, heads, b.product, delta);
    if (first)
      for (int64_t h = 0; h < heads; ++h) pivot[h] = delta[h];
    subtract(n, {pivot, 0}, b);
    if (additive) {
      const T s = slope;
      for (int64_t j = 0; j < count; ++j) {
        const T steep = b.score[j] > T(0) ? T(1) : s;
        b.product[j] *= steep;
        b.weight[j] *= steep;
      }
      add_edges(n, heads, b.product, sums);
      add_edges(n, heads, b.weight, sums + heads);
    } else if (k.scoring == Scoring::dot) {
      add_rows(n, heads, channels, b.product, far, sums);
      add_rows(n, heads, channels, b.weight, far, sums + width);
    } else {
      const T* own = elements(k.own) + d * width;
      const int64_t w = width;
      const T s = slope;
      for (int64_t i = 0; i < n; ++i) {
        const T* x = far[i];
        for (int64_t h = 0; h < heads; ++h) {
          const T p = b.product[i * heads + h], a = b.weight[i * heads + h];
          for_columns<T>(h * channels, (h + 1) * channels, [=]<int L>(int64_t c) {
            const simd::Vec<T, L> u = get<L>(own + c) + get<L>(x + c), steep = steepness<L>(u, s), bent = u * steep;
            put<L>(sums + c, get<L>(sums + c) + p * steep);
            put<L>(sums + w + c, get<L>(sums + w + c) + a * steep);
            put<L>(sums + 2 * w + c, get<L>(sums + 2 * w + c) + p * bent);
            put<L>(sums + 3 * w + c, get<L>(sums + 3 * w + c) + a * bent);
          });
        }
      }
    }
  }
  /// A piece of a hub leaves its sums as if D0 had been 0, as other pieces have another.
  void backward_dst_leave(T* state) const {
    const int64_t pairs = k.scoring == Scoring::gatv2 ? 2 : 1, per_head = side / heads;
    T *pivot = state + heads, *sums = pivot + heads;
    for (int64_t pair = 0; pair < pairs; ++pair, sums += 2 * side)
      for (int64_t j = 0; j < side; ++j) sums[j] += pivot[j / per_head] * sums[side + j];
    for (int64_t h = 0; h < heads; ++h) pivot[h] = T(0);
  }
  void backward_dst_end(int64_t d, const T* state, int64_t partial) const {
    const T *delta = state, *pivot = delta + heads, *sums = pivot + heads;
    const T *norm = norm_of(d)[0], *own = elements(k.own) + d * side;
    T *terms = elements(k.terms) + d * 4 * heads, *grad_own = elements(k.grad_own) + d * side;
    for (int64_t h = 0; h < heads; ++h) {
      terms[h] = additive ? own[h] : T(0);
      terms[heads + h] = norm[h];
      terms[2 * heads + h] = norm[heads + h];
      terms[3 * heads + h] = delta[h];
    }
    const int64_t per_head = side / heads, w = width;
    for (int64_t h = 0; h < heads; ++h) {
      const T rest = delta[h] - pivot[h];
      for (int64_t j = h * per_head; j < (h + 1) * per_head; ++j) {
        const T g = sums[j] - rest * sums[side + j];
        grad_own[j] = additive ? g : k.scoring == Scoring::dot ? T(k.scale) * g : att[j] * g;
        if (k.scoring == Scoring::gatv2) (elements(k.grad_att) + partial * w)[j] += sums[2 * w + j] - rest * sums[3 * w + j];
      }
    }
  }

  /// State: gradient of the row's value (width), and of its side of the scores (side), without att for gatv2.
  void backward_src(int64_t s, int64_t begin, int64_t n, T* state, Buffers<T>& b) const {
    T *sum = state, *side_sum = sum + width, *room = side_sum + side;
    const Rows<T> far = scores(s, begin, n, room, b.score), grad = nodes(k.grad, width, begin);
    const auto terms = [&](int64_t part) { return nodes(elements(k.terms) + part * heads, 4 * heads, begin); };
    gradients_of_weights(begin, n, values(s, begin, n, room), grad, terms(1), b);
    subtract(n, terms(3), b);
    if (k.drops) multiply(n * heads, b.factor, b.weight);
    add_rows(n, heads, channels, b.weight, grad, sum);
    if (additive) {
      const T steep = slope;
      for (int64_t j = 0; j < n * heads; ++j) b.product[j] *= b.score[j] > T(0) ? T(1) : steep;
      add_edges(n, heads, b.product, side_sum);
      if (k.grad_edge == nullptr) return;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t h = 0; h < heads; ++h) (elements(k.grad_edge) + id(begin + i) * heads)[h] = b.product[i * heads + h];
    } else if (k.scoring == Scoring::dot) {
      for (int64_t j = 0; j < n * heads; ++j) b.product[j] *= T(k.scale);
      add_rows(n, heads, channels, b.product, far, side_sum);
      if (k.grad_edge == nullptr) return;
      for (int64_t i = 0; i < n; ++i) {
        T* to = elements(k.grad_edge) + id(begin + i) * width;
        const T *x = far[i], *g = grad[i];
        for (int64_t h = 0; h < heads; ++h) {
          const T p = b.product[i * heads + h], w = b.weight[i * heads + h];
          for_columns<T>(h * channels, (h + 1) * channels,
                         [=]<int L>(int64_t c) { put<L>(to + c, p * get<L>(x + c) + w * get<L>(g + c)); });
        }
      }
    } else {
      const T* own = elements(k.own) + s * width;
      for (int64_t i = 0; i < n; ++i) {
        const T* x = far[i];
        for (int64_t h = 0; h < heads; ++h) {
          const T p = b.product[i * heads + h], steep = slope;
          for_columns<T>(h * channels, (h + 1) * channels, [=]<int L>(int64_t c) {
            put<L>(side_sum + c, get<L>(side_sum + c) + p * steepness<L>(get<L>(own + c) + get<L>(x + c), steep));
          });
        }
      }
      if (k.grad_edge == nullptr) return;
      for (int64_t i = 0; i < n; ++i) {
        const T *x = far[i], *a = att;
        T* to = elements(k.grad_edge) + id(begin + i) * width;
        for (int64_t h = 0; h < heads; ++h) {
          const T p = b.product[i * heads + h], steep = slope;
          for_columns<T>(h * channels, (h + 1) * channels, [=]<int L>(int64_t c) {
            put<L>(to + c, p * steepness<L>(get<L>(own + c) + get<L>(x + c), steep) * get<L>(a + c));
          });
        }
      }
    }
  }
  void backward_src_end(int64_t s, const T* state) const {
    const T *sum = state, *side_sum = sum + width;
    T* grad_value = elements(k.grad_value) + s * width;
    if (k.scoring == Scoring::gatv2) {
      for (int64_t j = 0; j < width; ++j) grad_value[j] = sum[j] + att[j] * side_sum[j];
      return;
    }
    for (int64_t j = 0; j < width; ++j) grad_value[j] = sum[j];
    T* grad_own = elements(k.grad_own) + s * side;
    for (int64_t j = 0; j < side; ++j) grad_own[j] = side_sum[j];
  }

  void start(T* state) const {
    for (int64_t j = 0; j < state_size; ++j) state[j] = T(0);
    if (k.pass == AttentionPass::forward)
      for (int64_t h = 0; h < heads; ++h) state[h] = -kInfinity<T>;
  }
  void join(const T* part, T* state) const {
    if (k.pass == AttentionPass::forward) return forward_join(part, state);
    for (int64_t j = 0; j < state_size; ++j) state[j] += part[j];
  }
  void end(int64_t row, const T* state, int64_t partial) const {
    switch (k.pass) {
      case AttentionPass::forward: return forward_end(row, state);
      case AttentionPass::weights: return;
      case AttentionPass::backward_dst: return backward_dst_end(row, state, partial);
      case AttentionPass::backward_src: return backward_src_end(row, state);
    }
  }
  void edges_of(int64_t row, int64_t begin, int64_t n, T* state, Buffers<T>& b, bool first) const {
    switch (k.pass) {
      case AttentionPass::forward: return forward(row, begin, n, state, b);
      case AttentionPass::weights: return weights(row, begin, n, state, b);
      case AttentionPass::backward_dst: return backward_dst(row, begin, n, state, b, first);
      case AttentionPass::backward_src: return backward_src(row, begin, n, state, b);
    }
  }
};

/// An array whose rows are gathered, to be fetched some edges ahead.
struct Fetched {
  const char* base;
  int64_t row_bytes, stride_bytes;
};

template <class T>
int gathered_arrays(const Walk<T>& walk, Fetched arrays[3]) {
  const Args& k = walk.k;
  int count = 0;
  const auto add = [&](const void* base, int64_t columns, int64_t stride) {
    arrays[count++] = {static_cast<const char*>(base), columns * int64_t(sizeof(T)), stride * int64_t(sizeof(T))};
  };
  add(k.other, walk.by_source && walk.additive ? k.other_stride : walk.side, k.other_stride);
  if (walk.by_source) {
    add(k.grad, walk.width, walk.width);
    if (!walk.additive) add(k.terms, 4 * walk.heads, 4 * walk.heads);
  } else if (k.value != nullptr && k.value != k.other) {
    add(k.value, walk.width, walk.width);
  }
  return count;
}

template <class T>
void attend(const Args& k) {
  const Walk<T> walk{k};
  const int64_t stride = walk.state_size + EdgeAttentionKernel::room_size(k), block = walk.block;
  T* states = Walk<T>::elements(k.states);
  Fetched arrays[3];
  const int num_arrays = gathered_arrays(walk, arrays);
  int64_t bytes = 0, lines = 0;
  for (int i = 0; i < num_arrays; ++i) {
    bytes += arrays[i].row_bytes;
    lines += (arrays[i].row_bytes + 63) / 64;
  }
  const Fetch fetch = fetch_of(k.other_rows * bytes);
  const int64_t ahead = fetch_distance(fetch, lines);
  const int64_t grain = kForkElements / (kChunkCost * (walk.width + 8 * walk.heads)) + 1;
  parallel_for(k.num_chunks, grain, [&](int64_t first, int64_t last) {
    Buffers<T> buffers;
    for (int64_t c = first; c < last; ++c) {
      const Chunk& chunk = k.chunks[c];
      T* state = states + (chunk.slot >= 0 ? k.num_chunks + chunk.slot : c) * stride;
      for (int64_t row = chunk.row_begin; row < chunk.row_end; ++row) {
        const int64_t row_begin = k.rowptr[row], row_end = k.rowptr[row + 1];
        const int64_t begin = row_begin > chunk.edge_begin ? row_begin : chunk.edge_begin;
        const int64_t end = row_end < chunk.edge_end ? row_end : chunk.edge_end;
        walk.start(state);
        for (int64_t at = begin; at < end; at += block) {
          const int64_t n = end - at < block ? end - at : block;
          if (fetch != Fetch::none)
            for (int64_t i = at + ahead; i < at + ahead + n && i < k.num_edges; ++i)
              for (int a = 0; a < num_arrays; ++a) {
                const char* p = arrays[a].base + int64_t(k.col[i]) * arrays[a].stride_bytes;
                for (int64_t byte = 0; byte < arrays[a].row_bytes; byte += 64)
                  fetch == Fetch::near ? __builtin_prefetch(p + byte, 0, 3) : __builtin_prefetch(p + byte, 0, 2);
              }
          walk.edges_of(row, at, n, state, buffers, at == begin);
        }
        if (chunk.slot < 0)
          walk.end(row, state, c);
        else if (k.pass == AttentionPass::backward_dst)
          walk.backward_dst_leave(state);
      }
    }
  });
  parallel_for(k.num_hubs, 1, [&](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) {
      const Hub& hub = k.hubs[h];
      T* state = states + (k.num_chunks + hub.slot_begin) * stride;
      for (int64_t slot = hub.slot_begin + 1; slot < hub.slot_end; ++slot)
        walk.join(states + (k.num_chunks + slot) * stride, state);
      walk.end(hub.row, state, k.num_chunks + h);
    }
  });
}

}  // namespace

template <Isa>
void EdgeAttentionKernel::cpu(const Args& args) {
  args.is_double ? attend<double>(args) : attend<float>(args);
}
template void EdgeAttentionKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
