// The softmax of a column over a row's edges, and the sum that it weighs, are
//
//     m[d] = sum over e of z[e] message[e] / sum over e of z[e],   z = exp(t message).
//
// z is usually shifted by the row's largest score, lest it overflow. As long as no score of the whole graph is larger than
// 60 or smaller than -60 it needs no shift, and what it gives is as exact: z, sums of a billion of them, and the gradients'
// 1 / sum stay far from the ends of f32, within which rounding is relative. Without a shift a message that goes along all
// edges of a source has one z for all of them: two sums by `spmm` and an exponential for each node, none for an edge. Larger
// scores go by `gat_attention` or `segment_softmax`, which shift.

#include "tessera/layers/conv/gen_conv.h"

#include <algorithm>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/scatter/segment_softmax.h"
#include "tessera/sparse/edge_attention.h"
#include "tessera/sparse/edge_plans.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

using Aggregate = GenConvOptions::Aggregate;

constexpr double kLargestScore = 60;
constexpr double kLeastSum = 1e-30;                 // less than exp(-60): of rows without edges
constexpr int64_t kMostHeads = 128;                 // of gat_attention
constexpr double kSmallest = 1e-4, kLargest = 100;  // of what a power is taken of

/// Messages of a graph: a row for each source, sent along all its edges, or a row for each edge.
struct Messages {
  const Graph& graph;
  Tensor rows;
  bool by_edge;

  Tensor reduce(const Tensor& of, Reduce how) const {
    return by_edge ? segment_reduce(of, edges_by_dst(graph), how) : spmm(graph, of, how);
  }

  /// The sum weighted by the softmax of `scores`, column by column.
  Tensor weighted(const Tensor& scores) const {
    if (scores.numel() == 0 || norm(scores.detach(), Norm::inf).item() <= kLargestScore) {
      const Tensor z = exp(scores);
      return div(reduce(mul(rows, z), Reduce::sum), clamp(reduce(z, Reduce::sum), kLeastSum, 1e300));
    }
    if (by_edge) {
      const SegmentPlan plan = edges_by_dst(graph);
      return segment_reduce(mul(rows, segment_softmax(scores, plan)), plan);
    }
    const auto attend = [&](const Tensor& x, const Tensor& score) {  // a head for each column
      return gat_attention(graph, x, score, zeros(Shape{graph.num_dst(), x.dim(1)}, x.dtype()), {.slope = 1});
    };
    const int64_t width = rows.dim(1);
    if (width <= kMostHeads) return attend(rows, scores);
    std::vector<Tensor> parts;
    for (int64_t at = 0; at < width; at += kMostHeads) {
      const int64_t end = std::min(width, at + kMostHeads);
      parts.push_back(attend(slice(rows, 1, at, end), slice(scores, 1, at, end)));
    }
    return concat(parts, 1);
  }
};

/// x^(p or 1/p), p a number or a parameter; x above 0.
Tensor power(const Tensor& x, const GenConv& conv, bool inverse) {
  const Tensor base = clamp(x, kSmallest, kLargest);
  if (!conv.p.defined()) return pow(base, inverse ? 1 / conv.options.p : conv.options.p);
  return exp(inverse ? div(log(base), conv.p) : mul(log(base), conv.p));
}

Tensor aggregate(const GenConv& conv, const Messages& messages) {
  const Tensor& rows = messages.rows;
  switch (conv.options.aggregate) {
    case Aggregate::sum: return messages.reduce(rows, Reduce::sum);
    case Aggregate::mean: return messages.reduce(rows, Reduce::mean);
    case Aggregate::max: return messages.reduce(rows, Reduce::max);
    case Aggregate::min: return messages.reduce(rows, Reduce::min);
    case Aggregate::powermean:
      if (!conv.p.defined() && conv.options.p == 1) return messages.reduce(rows, Reduce::mean);
      return power(messages.reduce(power(rows, conv, false), Reduce::mean), conv, true);
    case Aggregate::softmax:
    case Aggregate::softmax_sg: break;
  }
  Tensor scores = rows;
  if (conv.t.defined())
    scores = mul(rows, conv.t);
  else if (conv.options.t != 1)
    scores = scale(rows, conv.options.t);
  return messages.weighted(conv.options.aggregate == Aggregate::softmax_sg ? scores.detach() : scores);
}

Tensor one_value(double value) { return full(Shape{1}, value).set_requires_grad(); }

}  // namespace

GenMlp::GenMlp(int64_t channels, Generator& generator, const GenConvOptions& options) {
  for (int i = 0; i < options.layers; ++i) {
    const bool last = i + 1 == options.layers;
    const int64_t hidden = channels * options.expansion;
    lins.emplace_back(i == 0 ? channels : hidden, last ? channels : hidden, generator, LinearOptions{.bias = options.bias});
    if (last) continue;
    if (options.norm == GenConvOptions::Norm::batch) batch_norms.emplace_back(hidden);
    const LayerNormOptions rows{.mode = LayerNormOptions::Mode::node, .affine = options.norm == GenConvOptions::Norm::layer};
    if (options.norm == GenConvOptions::Norm::layer || options.norm == GenConvOptions::Norm::instance)
      layer_norms.emplace_back(hidden, rows);
  }
}

Tensor GenMlp::operator()(const Tensor& x) const {
  Tensor h = x;
  for (size_t i = 0; i + 1 < lins.size(); ++i) {
    if (batch_norms.empty() && layer_norms.empty()) {
      h = matmul(h, lins[i].weight, {.transpose_b = true, .bias = lins[i].bias, .activation = Activation::relu});
      continue;
    }
    h = lins[i](h);
    h = relu(batch_norms.empty() ? layer_norms[i](h) : batch_norms[i](h));
  }
  return lins.back()(h);
}

GenConv::GenConv(int64_t in, int64_t out, Generator& generator, GenConvOptions given) : options(given) {
  check(in >= 1 && out >= 1 && given.layers >= 1 && given.expansion >= 1,
        "gen_conv: in {}, out {}, layers {} and expansion {} need to be 1 or more", in, out, given.layers, given.expansion);
  check(given.edge_dim >= 0, "gen_conv: edge_dim is {} but needs to be 0 or more", given.edge_dim);
  check(!given.learn_t || given.aggregate == Aggregate::softmax, "gen_conv: learn_t needs aggregate softmax");
  check(!given.learn_p || given.aggregate == Aggregate::powermean, "gen_conv: learn_p needs aggregate powermean");
  check(given.p != 0, "gen_conv: p is 0 but a power mean needs another power");
  const LinearOptions plain{.bias = given.bias};
  if (given.learn_t) t = one_value(given.t);
  if (given.learn_p) p = one_value(given.p);
  if (in != out) lin_src = Linear(in, out, generator, plain);
  if (given.edge_dim != 0 && given.edge_dim != out) lin_edge = Linear(given.edge_dim, out, generator, plain);
  if (in != out) lin_dst = Linear(in, out, generator, plain);
  mlp = GenMlp(out, generator, given);
  msg_norm = MessageNorm(given.learn_message_scale);
}

Tensor GenConv::operator()(const Tensor& x_src, const Tensor& x_dst, const Graph& graph, const Tensor& edge_attr) const {
  const int64_t out = mlp.lins.back().weight.dim(0);
  const int64_t in = lin_src.weight.defined() ? lin_src.weight.dim(1) : out;
  check(x_src.ndim() == 2 && x_src.dim(0) == graph.num_src() && x_src.dim(1) == in,
        "gen_conv: x has shape {} but needs [{}, {}]", x_src.shape(), graph.num_src(), in);
  check(x_dst.ndim() == 2 && x_dst.dim(0) == graph.num_dst() && x_dst.dim(1) == in,
        "gen_conv: x_dst has shape {} but needs [{}, {}]", x_dst.shape(), graph.num_dst(), in);
  Tensor sent = lin_src.weight.defined() ? lin_src(x_src) : x_src;
  if (edge_attr.defined()) {
    const int64_t width = lin_edge.weight.defined() ? lin_edge.weight.dim(1) : out;
    check(edge_attr.ndim() == 2 && edge_attr.dim(0) == graph.num_edges() && edge_attr.dim(1) == width,
          "gen_conv: edge_attr has shape {} but needs [{}, {}]", edge_attr.shape(), graph.num_edges(), width);
    sent = add(gather(sent, edges_by_src(graph)), lin_edge.weight.defined() ? lin_edge(edge_attr) : edge_attr);
  }
  Tensor received = aggregate(*this, {graph, shift(relu(sent), options.eps), edge_attr.defined()});
  if (options.message_norm) received = msg_norm(x_dst, received);
  return mlp(add(received, lin_dst.weight.defined() ? lin_dst(x_dst) : x_dst));
}

}  // namespace tessera
