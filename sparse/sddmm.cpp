#include "tessera/sparse/sddmm.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/sddmm_kernels.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

void check_side(const char* what, const Tensor& rows, const char* of, int64_t count) {
  check(rows.defined(), "sddmm_dot: {} is undefined", what);
  check<Unsupported>(rows.dtype() == DType::f32 || rows.dtype() == DType::f64,
                     "sddmm_dot: dtype {} is not supported, use f32 or f64", rows.dtype());
  check(rows.ndim() == 2 && rows.dim(0) == count, "sddmm_dot: {} has shape {} but the graph has {} {}, so it needs [{}, F]",
        what, rows.shape(), count, of, count);
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
  check(graph.defined(), "sddmm_dot: the graph is undefined");
  check_side("a_dst", a_dst, "destinations", graph.num_dst());
  check_side("b_src", b_src, "sources", graph.num_src());
  check(a_dst.dtype() == b_src.dtype(), "sddmm_dot: a_dst is {} but b_src is {}", a_dst.dtype(), b_src.dtype());
  check(a_dst.dim(1) == b_src.dim(1), "sddmm_dot: a_dst has shape {} and b_src {} but they need the same width",
        a_dst.shape(), b_src.shape());
  Tensor out = scaled_dots(graph, a_dst, b_src, false, Tensor(), Tensor());
  record("sddmm_dot", out, {a_dst, b_src}, [graph, a = Saved(a_dst), b = Saved(b_src)](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, spmm(graph, b.get(), Reduce::sum, {.weight = grad, .src_scale = {}, .dst_scale = {}}));
    if (into.wants(1))
      into.add(1, spmm(graph.transpose(), a.get(), Reduce::sum, {.weight = grad, .src_scale = {}, .dst_scale = {}}));
  });
  return out;
}

}  // namespace tessera
