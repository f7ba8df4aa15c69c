#include "tessera/sparse/sddmm.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/sddmm_kernels.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

void check_side(const char* op, const char* what, const Tensor& rows, const char* of, int64_t count) {
  check(rows.defined(), "{}: {} is undefined", op, what);
  check<Unsupported>(rows.dtype() == DType::f32 || rows.dtype() == DType::f64,
                     "{}: dtype {} is not supported, use f32 or f64", op, rows.dtype());
  check(rows.ndim() == 2 && rows.dim(0) == count, "{}: {} has shape {} but the graph has {} {}, so it needs [{}, F]", op,
        what, rows.shape(), count, of, count);
}

void check_sides(const char* op, const Graph& graph, const Tensor& a_dst, const Tensor& b_src) {
  check(graph.defined(), "{}: the graph is undefined", op);
  check_side(op, "a_dst", a_dst, "destinations", graph.num_dst());
  check_side(op, "b_src", b_src, "sources", graph.num_src());
  check(a_dst.dtype() == b_src.dtype(), "{}: a_dst is {} but b_src is {}", op, a_dst.dtype(), b_src.dtype());
  check(a_dst.dim(1) == b_src.dim(1), "{}: a_dst has shape {} and b_src {} but they need the same width", op, a_dst.shape(),
        b_src.shape());
}

using Form = SddmmRowsKernel::Form;

/// `width` columns of `rows` rows; b may be undefined.
Tensor edge_rows(const Graph& graph, Form form, int64_t heads, int64_t channels, const Tensor& a, const Tensor& b,
                 int64_t rows, int64_t width, double factor = 1) {
  const Schedule& schedule = GraphState::schedule_of(graph);
  if (logs_dispatch())
    log_dispatch("sddmm: cpu {}, {} threads; {} edges, {} columns {}", name(active_isa()), threads(), graph.num_edges(),
                 width, form == Form::pull ? "back to the rows" : "written for each");
  Tensor out = Tensor::empty(Shape{rows, width}, a.dtype(), a.device());
  const Scratch<char> partials(form == Form::pull ? schedule.slots * width * int64_t(size_of(a.dtype())) : 0);
  run<SddmmRowsKernel>(a.device(), {.is_double = a.dtype() == DType::f64,
                                    .form = form,
                                    .num_edges = graph.num_edges(),
                                    .heads = heads,
                                    .channels = channels,
                                    .rowptr = graph.rowptr().data<int64_t>(),
                                    .col = graph.col().data<int32_t>(),
                                    .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
                                    .chunks = schedule.chunks.data(),
                                    .num_chunks = int64_t(schedule.chunks.size()),
                                    .hubs = schedule.hubs.data(),
                                    .num_hubs = int64_t(schedule.hubs.size()),
                                    .a = a.raw(),
                                    .b = b.defined() ? b.raw() : nullptr,
                                    .factor = factor,
                                    .out = out.mutable_raw(),
                                    .partials = partials.data()});
  return out;
}

/// factor x sum over each row's edges of grad[e] (x b[s] where b is given); grad (E, F), or (E, heads) for heads > 0.
Tensor pull(const Graph& graph, int64_t heads, const Tensor& grad, const Tensor& b, double factor = 1) {
  const int64_t width = heads > 0 ? b.dim(1) : grad.dim(1);
  return edge_rows(graph, Form::pull, heads, heads > 0 ? width / heads : width, grad, b, graph.num_dst(), width, factor);
}

}  // namespace

Tensor scaled_dots(const Graph& graph, const Tensor& a_dst, const Tensor& b_src, bool mean, const Tensor& src_scale,
                   const Tensor& dst_scale) {
  const Schedule& schedule = GraphState::schedule_of(graph);
  Tensor out = Tensor::empty(Shape{graph.num_edges()}, a_dst.dtype(), a_dst.device());
  run<SddmmKernel>(a_dst.device(), {.is_double = a_dst.dtype() == DType::f64,
                                    .mean = mean,
                                    .num_edges = graph.num_edges(),
                                    .width = a_dst.dim(1),
                                    .rowptr = graph.rowptr().data<int64_t>(),
                                    .col = graph.col().data<int32_t>(),
                                    .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
                                    .chunks = schedule.chunks.data(),
                                    .num_chunks = int64_t(schedule.chunks.size()),
                                    .a = a_dst.raw(),
                                    .b = b_src.raw(),
                                    .b_rows = b_src.dim(0),
                                    .src_scale = src_scale.defined() ? src_scale.raw() : nullptr,
                                    .dst_scale = dst_scale.defined() ? dst_scale.raw() : nullptr,
                                    .out = out.mutable_raw()});
  return out;
}

Tensor sddmm_dot(const Graph& graph, const Tensor& a_dst, const Tensor& b_src) {
  check_sides("sddmm_dot", graph, a_dst, b_src);
  Tensor out = scaled_dots(graph, a_dst, b_src, false, Tensor(), Tensor());
  record("sddmm_dot", out, {a_dst, b_src}, [graph, a = Saved(a_dst), b = Saved(b_src)](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, spmm(graph, b.get(), Reduce::sum, {.weight = grad, .src_scale = {}, .dst_scale = {}}));
    if (into.wants(1))
      into.add(1, spmm(graph.transpose(), a.get(), Reduce::sum, {.weight = grad, .src_scale = {}, .dst_scale = {}}));
  });
  return out;
}

Tensor sddmm_dot(const Graph& graph, const Tensor& a_dst, const Tensor& b_src, int64_t heads) {
  check_sides("sddmm_dot", graph, a_dst, b_src);
  check(heads >= 1 && a_dst.dim(1) % heads == 0,
        "sddmm_dot: a_dst has shape {} but {} heads need [num_dst, heads x channels]", a_dst.shape(), heads);
  Tensor out = edge_rows(graph, Form::dots, heads, a_dst.dim(1) / heads, a_dst, b_src, graph.num_edges(), heads);
  record("sddmm_dot", out, {a_dst, b_src},
         [graph, heads, a = Saved(a_dst), b = Saved(b_src)](const Tensor& grad, Gradients& into) {
           if (into.wants(0)) into.add(0, pull(graph, heads, grad, b.get()));
           if (into.wants(1)) into.add(1, pull(graph.transpose(), heads, grad, a.get()));
         });
  return out;
}

Tensor sddmm(const Graph& graph, EdgeOp op, const Tensor& a_dst, const Tensor& b_src) {
  check_sides("sddmm", graph, a_dst, b_src);
  const Form form = op == EdgeOp::add ? Form::add : op == EdgeOp::sub ? Form::sub : Form::mul;
  const int64_t width = a_dst.dim(1);
  Tensor out = edge_rows(graph, form, 0, width, a_dst, b_src, graph.num_edges(), width);
  const bool product = op == EdgeOp::mul;
  record("sddmm", out, {a_dst, b_src},
         [graph, op, a = Saved(product ? a_dst : Tensor()), b = Saved(product ? b_src : Tensor())](const Tensor& grad,
                                                                                                   Gradients& into) {
           const auto other = [](const Saved& side) { return side.defined() ? side.get() : Tensor(); };
           if (into.wants(0)) into.add(0, pull(graph, 0, grad, other(b)));
           if (into.wants(1)) into.add(1, pull(graph.transpose(), 0, grad, other(a), op == EdgeOp::sub ? -1 : 1));
         });
  return out;
}

}  // namespace tessera
