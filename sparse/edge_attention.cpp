#include "tessera/sparse/edge_attention.h"

#include <cmath>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/edge_attention_kernels.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {
namespace {

/// What is attended to, and how. dst and src are the two sides of the scores.
struct Attention {
  const char* op;
  Scoring scoring;
  Graph graph;
  int64_t heads, channels;
  double slope, dropout;
  Philox random;

  int64_t width() const { return heads * channels; }
  int64_t side() const { return scoring == Scoring::additive ? heads : width(); }
};

struct Sides {
  Tensor dst, src, edge, att, value;
};

const void* raw_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.raw() : nullptr; }

void check_dtype(const char* op, const char* what, const Tensor& x) {
  check(x.defined(), "{}: {} is undefined", op, what);
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "{}: dtype {} is not supported, use f32 or f64", op,
                     x.dtype());
}

/// `x` has `count` rows, one for each of the graph's `of`, and `columns` columns; dtype as `like`.
void check_rows(const char* op, const char* what, const Tensor& x, const Tensor& like, int64_t count, const char* of,
                int64_t columns) {
  check(x.defined(), "{}: {} is undefined", op, what);
  check(x.ndim() == 2 && x.dim(0) == count && x.dim(1) == columns, "{}: {} has shape {} but {} {} need [{}, {}]", op, what,
        x.shape(), count, of, count, columns);
  check(x.dtype() == like.dtype(), "{}: {} is {} but needs {}", op, what, x.dtype(), like.dtype());
}

void check_common(const Attention& a, const Sides& sides) {
  check(a.heads >= 1 && a.channels >= 1, "{}: {} heads of {} channels were given but it needs 1 or more of both", a.op,
        a.heads, a.channels);
  check<Unsupported>(a.heads <= EdgeAttentionKernel::kMaxHeads, "{}: {} heads were given but at most {} are supported", a.op,
                     a.heads, EdgeAttentionKernel::kMaxHeads);
  check(a.slope >= 0, "{}: slope is {} but needs to be 0 or more", a.op, a.slope);
  check(a.dropout >= 0 && a.dropout <= 1, "{}: dropout is {} but needs to be in [0, 1]", a.op, a.dropout);
  if (sides.edge.defined()) check_rows(a.op, "edge", sides.edge, sides.src, a.graph.num_edges(), "edges", a.side());
}

/// Arguments that all passes share, for a walk along the rows of `graph`: the attention's or its transpose.
EdgeAttentionKernel::Args arguments(const Attention& a, const Sides& sides, const Graph& graph, AttentionPass pass) {
  const Schedule& schedule = GraphState::schedule_of(graph);
  return {.is_double = sides.src.dtype() == DType::f64,
          .scoring = a.scoring,
          .pass = pass,
          .heads = a.heads,
          .channels = a.channels,
          .num_edges = graph.num_edges(),
          .rowptr = graph.rowptr().data<int64_t>(),
          .col = graph.col().data<int32_t>(),
          .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
          .chunks = schedule.chunks.data(),
          .num_chunks = int64_t(schedule.chunks.size()),
          .hubs = schedule.hubs.data(),
          .num_hubs = int64_t(schedule.hubs.size()),
          .other_rows = graph.num_src(),
          .own = sides.dst.raw(),
          .other = sides.src.raw(),
          .other_stride = a.side(),
          .edge = raw_or_null(sides.edge),
          .att = raw_or_null(sides.att),
          .slope = a.slope,
          .scale = 1 / std::sqrt(double(a.channels)),
          .value = raw_or_null(sides.value),
          .drops = a.dropout > 0,
          .threshold = a.dropout < 1 ? uint32_t(a.dropout * 0x1p32) : ~uint32_t{0},
          .kept_scale = a.dropout < 1 ? 1 / (1 - a.dropout) : 0,
          .random = a.random};
}

void walk(const Attention& a, const Graph& graph, EdgeAttentionKernel::Args args, Device device) {
  if (logs_dispatch()) {
    const char* pass = args.pass == AttentionPass::forward        ? "forward"
                       : args.pass == AttentionPass::backward_dst ? "backward by destination"
                       : args.pass == AttentionPass::backward_src ? "backward by source"
                                                                  : "weights";
    log_dispatch(
        "{} {}: cpu {}, {} threads; {} edges, {} heads x {} channels; {} chunks, {} hubs; one walk, nothing of edges "
        "x channels",
        a.op, pass, name(active_isa()), threads(), args.num_edges, args.heads, args.channels, args.num_chunks,
        args.num_hubs);
  }
  const int64_t states = args.num_chunks + GraphState::schedule_of(graph).slots;
  const int64_t elements = EdgeAttentionKernel::state_size(args) + EdgeAttentionKernel::room_size(args);
  const Scratch<char> scratch(states * elements * (args.is_double ? 8 : 4));
  args.states = scratch.data();
  run<EdgeAttentionKernel>(device, args);
}

struct Attended {
  Tensor out, norm;
};

Attended forward(const Attention& a, const Sides& sides) {
  const DType dtype = sides.src.dtype();
  Attended result{{}, Tensor::empty(Shape{a.graph.num_dst(), 2 * a.heads}, dtype)};
  EdgeAttentionKernel::Args args = arguments(a, sides, a.graph, AttentionPass::forward);
  args.norm_out = result.norm.mutable_raw();
  if (sides.value.defined()) {
    result.out = Tensor::empty(Shape{a.graph.num_dst(), a.width()}, dtype);
    args.out = result.out.mutable_raw();
  }
  walk(a, a.graph, args, sides.src.device());
  return result;
}

/// Gradients of the sides; those of edge and att where they are defined, of value unless it is gatv2's src.
Sides backward_of(const Attention& a, const Sides& sides, const Tensor& norm, const Tensor& grad, bool src_wanted,
                  bool edge_wanted) {
  const DType dtype = grad.dtype();
  const int64_t num_dst = a.graph.num_dst(), num_src = a.graph.num_src();
  Tensor terms = Tensor::empty(Shape{num_dst, 4 * a.heads}, dtype);
  Sides out;
  out.dst = Tensor::empty(Shape{num_dst, a.side()}, dtype);
  EdgeAttentionKernel::Args args = arguments(a, sides, a.graph, AttentionPass::backward_dst);
  args.grad = grad.raw();
  args.norm = norm.raw();
  args.terms = terms.mutable_raw();
  args.grad_own = out.dst.mutable_raw();
  Tensor att_sums;
  if (a.scoring == Scoring::gatv2) {
    att_sums = zeros(Shape{args.num_chunks + args.num_hubs, a.width()}, dtype);
    args.grad_att = att_sums.mutable_raw();
  }
  walk(a, a.graph, args, grad.device());
  if (att_sums.defined()) out.att = sum_rows(att_sums).view_as(sides.att.shape());
  if (!src_wanted && !edge_wanted) return out;

  const Graph reversed = a.graph.transpose();
  args = arguments(a, sides, reversed, AttentionPass::backward_src);
  args.own = sides.src.raw();
  args.other = a.scoring == Scoring::additive ? terms.raw() : sides.dst.raw();
  args.other_stride = a.scoring == Scoring::additive ? 4 * a.heads : a.side();
  args.grad = grad.raw();
  args.terms = terms.mutable_raw();
  out.value = Tensor::empty(Shape{num_src, a.width()}, dtype);
  args.grad_value = out.value.mutable_raw();
  if (a.scoring != Scoring::gatv2) {
    out.src = Tensor::empty(Shape{num_src, a.side()}, dtype);
    args.grad_own = out.src.mutable_raw();
  }
  if (edge_wanted) {
    out.edge = Tensor::empty(Shape{a.graph.num_edges(), a.side()}, dtype);
    args.grad_edge = out.edge.mutable_raw();
  }
  walk(a, reversed, args, grad.device());
  return out;
}

/// Softmax weights by edge id, of what `forward` with no values gives.
Tensor weights_of(const Attention& a, const Sides& sides) {
  const Tensor norm = forward(a, sides).norm;
  Tensor out = Tensor::empty(Shape{a.graph.num_edges(), a.heads}, sides.src.dtype());
  EdgeAttentionKernel::Args args = arguments(a, sides, a.graph, AttentionPass::weights);
  args.norm = norm.raw();
  args.out = out.mutable_raw();
  walk(a, a.graph, args, sides.src.device());
  return out;
}

/// What a backward pass needs, as it was.
struct SavedSides {
  Saved dst, src, edge, att, value, norm;
  explicit SavedSides(const Sides& s, const Tensor& l)
      : dst(s.dst), src(s.src), edge(s.edge), att(s.att), value(s.value), norm(l) {}
  Sides get() const {
    const auto of = [](const Saved& s) { return s.defined() ? s.get() : Tensor(); };
    return {of(dst), of(src), of(edge), of(att), of(value)};
  }
};

Attention additive_of(const char* op, const Graph& graph, const Sides& sides, int64_t channels,
                      const EdgeAttentionOptions& options) {
  check(graph.defined(), "{}: the graph is undefined", op);
  check_dtype(op, "a_src", sides.src);
  check(sides.src.ndim() == 2, "{}: a_src has shape {} but needs [num_src, heads]", op, sides.src.shape());
  const int64_t heads = sides.src.dim(1);
  check_rows(op, "a_src", sides.src, sides.src, graph.num_src(), "sources", heads);
  check_rows(op, "a_dst", sides.dst, sides.src, graph.num_dst(), "destinations", heads);
  const Attention a{op, Scoring::additive, graph, heads, channels, options.slope, options.dropout, options.random};
  check_common(a, sides);
  return a;
}

Attention gatv2_of(const char* op, const Graph& graph, const Sides& sides, const EdgeAttentionOptions& options) {
  check(graph.defined(), "{}: the graph is undefined", op);
  check_dtype(op, "x_src", sides.src);
  check(sides.att.defined() && sides.att.ndim() == 2 && sides.att.dtype() == sides.src.dtype(),
        "{}: att needs to be [heads, channels] of x_src's dtype", op);
  const Attention a{
      op, Scoring::gatv2, graph, sides.att.dim(0), sides.att.dim(1), options.slope, options.dropout, options.random};
  check_rows(op, "x_src", sides.src, sides.src, graph.num_src(), "sources", a.width());
  check_rows(op, "x_dst", sides.dst, sides.src, graph.num_dst(), "destinations", a.width());
  check_common(a, sides);
  return a;
}

Attention dot_of(const char* op, const Graph& graph, const Sides& sides, int64_t heads,
                 const EdgeAttentionOptions& options) {
  check(graph.defined(), "{}: the graph is undefined", op);
  check_dtype(op, "k", sides.src);
  check(sides.src.ndim() == 2 && heads >= 1 && sides.src.dim(1) % heads == 0,
        "{}: k has shape {} but {} heads need [num_src, heads x channels]", op, sides.src.shape(), heads);
  const int64_t width = sides.src.dim(1);
  check_rows(op, "k", sides.src, sides.src, graph.num_src(), "sources", width);
  check_rows(op, "q", sides.dst, sides.src, graph.num_dst(), "destinations", width);
  const Attention a{op, Scoring::dot, graph, heads, width / heads, options.slope, options.dropout, options.random};
  check_common(a, sides);
  return a;
}

}  // namespace

Tensor gat_attention(const Graph& graph, const Tensor& x, const Tensor& a_src, const Tensor& a_dst,
                     const EdgeAttentionOptions& options) {
  check_dtype("gat_attention", "x", x);
  const Sides sides{a_dst, a_src, options.edge, {}, x};
  const int64_t heads = a_src.defined() && a_src.ndim() == 2 && a_src.dim(1) > 0 ? a_src.dim(1) : 1;
  check(x.ndim() == 2 && x.dim(1) % heads == 0,
        "gat_attention: x has shape {} but {} heads need [num_src, heads x channels]", x.shape(), heads);
  const Attention a = additive_of("gat_attention", graph, sides, x.dim(1) / heads, options);
  check_rows(a.op, "x", x, a_src, graph.num_src(), "sources", a.width());
  auto [out, norm] = forward(a, sides);
  record("gat_attention", out, {x, a_src, a_dst, options.edge},
         [a, saved = SavedSides(sides, norm)](const Tensor& grad, Gradients& into) {
           Sides g = backward_of(a, saved.get(), saved.norm.get(), grad, into.wants(0) || into.wants(1), into.wants(3));
           if (into.wants(0)) into.add(0, std::move(g.value));
           if (into.wants(1)) into.add(1, std::move(g.src));
           if (into.wants(2)) into.add(2, std::move(g.dst));
           if (into.wants(3)) into.add(3, std::move(g.edge));
         });
  return out;
}

Tensor gatv2_attention(const Graph& graph, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                       const EdgeAttentionOptions& options) {
  const Sides sides{x_dst, x_src, options.edge, att, x_src};
  const Attention a = gatv2_of("gatv2_attention", graph, sides, options);
  auto [out, norm] = forward(a, sides);
  record("gatv2_attention", out, {x_src, x_dst, att, options.edge},
         [a, saved = SavedSides(sides, norm)](const Tensor& grad, Gradients& into) {
           Sides g = backward_of(a, saved.get(), saved.norm.get(), grad, into.wants(0), into.wants(3));
           if (into.wants(0)) into.add(0, std::move(g.value));
           if (into.wants(1)) into.add(1, std::move(g.dst));
           if (into.wants(2)) into.add(2, std::move(g.att));
           if (into.wants(3)) into.add(3, std::move(g.edge));
         });
  return out;
}

Tensor dot_attention(const Graph& graph, const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                     const EdgeAttentionOptions& options) {
  const Sides sides{q, k, options.edge, {}, v};
  const Attention a = dot_of("dot_attention", graph, sides, heads, options);
  check_rows(a.op, "v", v, k, graph.num_src(), "sources", a.width());
  auto [out, norm] = forward(a, sides);
  record("dot_attention", out, {q, k, v, options.edge},
         [a, saved = SavedSides(sides, norm)](const Tensor& grad, Gradients& into) {
           Sides g = backward_of(a, saved.get(), saved.norm.get(), grad, into.wants(1) || into.wants(2), into.wants(3));
           if (into.wants(0)) into.add(0, std::move(g.dst));
           if (into.wants(1)) into.add(1, std::move(g.src));
           if (into.wants(2)) into.add(2, std::move(g.value));
           if (into.wants(3)) into.add(3, std::move(g.edge));
         });
  return out;
}

Tensor gat_attention_weights(const Graph& graph, const Tensor& a_src, const Tensor& a_dst,
                             const EdgeAttentionOptions& options) {
  const Sides sides{a_dst, a_src, options.edge, {}, {}};
  return weights_of(additive_of("gat_attention_weights", graph, sides, 1, options), sides);
}

Tensor gatv2_attention_weights(const Graph& graph, const Tensor& x_src, const Tensor& x_dst, const Tensor& att,
                               const EdgeAttentionOptions& options) {
  const Sides sides{x_dst, x_src, options.edge, att, {}};
  return weights_of(gatv2_of("gatv2_attention_weights", graph, sides, options), sides);
}

Tensor dot_attention_weights(const Graph& graph, const Tensor& q, const Tensor& k, int64_t heads,
                             const EdgeAttentionOptions& options) {
  const Sides sides{q, k, options.edge, {}, {}};
  return weights_of(dot_of("dot_attention_weights", graph, sides, heads, options), sides);
}

}  // namespace tessera
