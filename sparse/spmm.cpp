#include "tessera/sparse/spmm.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/parallel.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/sparse/spmm_kernels.h"

namespace tessera {
namespace {

const void* raw_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.raw() : nullptr; }

void check_factor(const char* what, const Tensor& factor, const char* of, int64_t count, DType dtype, bool has_gradient) {
  if (!factor.defined()) return;
  check(factor.ndim() == 1 && factor.dim(0) == count, "spmm: {} has shape {} but the graph has {} {}, so it needs [{}]",
        what, factor.shape(), count, of, count);
  check(factor.dtype() == dtype, "spmm: {} is {} but x is {}", what, factor.dtype(), dtype);
  check<Unsupported>(has_gradient || !factor.requires_grad(), "spmm: {} requires a gradient, which only x and weight get",
                     what);
}

/// Forward without checks or history.
Tensor sum_edges(const Graph& graph, const Tensor& x, bool mean, const Tensor& weight, const Tensor& src_scale,
                 const Tensor& dst_scale) {
  const Schedule& schedule = GraphState::schedule_of(graph);
  const int64_t width = x.dim(1);
  Tensor out = Tensor::empty(Shape{graph.num_dst(), width}, x.dtype(), x.device());
  Scratch<char> partials(schedule.slots * width * int64_t(size_of(x.dtype())));
  run<SpmmKernel>(x.device(), {.is_double = x.dtype() == DType::f64,
                               .mean = mean,
                               .rows = graph.num_dst(),
                               .num_edges = graph.num_edges(),
                               .width = width,
                               .rowptr = graph.rowptr().data<int64_t>(),
                               .col = graph.col().data<int32_t>(),
                               .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
                               .chunks = schedule.chunks.data(),
                               .num_chunks = int64_t(schedule.chunks.size()),
                               .hubs = schedule.hubs.data(),
                               .num_hubs = int64_t(schedule.hubs.size()),
                               .x = x.raw(),
                               .x_rows = x.dim(0),
                               .weight = raw_or_null(weight),
                               .src_scale = raw_or_null(src_scale),
                               .dst_scale = raw_or_null(dst_scale),
                               .out = out.mutable_raw(),
                               .partials = partials.data()});
  return out;
}

/// The factor of each result row: dst_scale, divided by the number of edges for a mean; undefined for 1.
Tensor row_factors(const Graph& graph, bool mean, const Tensor& dst_scale, DType dtype) {
  if (!mean) return dst_scale;
  Tensor factors = Tensor::empty(Shape{graph.num_dst()}, dtype);
  with_float(dtype, "spmm", [&]<class T>() {
    const int64_t* rowptr = graph.rowptr().data<int64_t>();
    const T* scale = dst_scale.defined() ? dst_scale.data<T>() : nullptr;
    T* out = factors.mutable_data<T>();
    parallel_for(graph.num_dst(), 1 << 14, [=](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d) {
        const int64_t n = rowptr[d + 1] - rowptr[d];
        out[d] = n == 0 ? T(0) : (scale != nullptr ? scale[d] : T(1)) / T(n);
      }
    });
  });
  return factors;
}

}  // namespace

Tensor spmm(const Graph& graph, const Tensor& x, Reduce reduce, const SpmmOptions& options) {
  check(graph.defined(), "spmm: the graph is undefined");
  check(x.defined(), "spmm: x is undefined");
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64, "spmm: dtype {} is not supported, use f32 or f64",
                     x.dtype());
  check<Unsupported>(reduce == Reduce::sum || reduce == Reduce::mean, "spmm: reduce {} is not supported, use sum or mean",
                     name(reduce));
  check(x.ndim() == 2 && x.dim(0) == graph.num_src(),
        "spmm: x has shape {} but the graph has {} sources, so it needs [{}, F]", x.shape(), graph.num_src(),
        graph.num_src());
  check_factor("weight", options.weight, "edges", graph.num_edges(), x.dtype(), true);
  check_factor("src_scale", options.src_scale, "sources", graph.num_src(), x.dtype(), false);
  check_factor("dst_scale", options.dst_scale, "destinations", graph.num_dst(), x.dtype(), false);

  const bool mean = reduce == Reduce::mean;
  Tensor out = sum_edges(graph, x, mean, options.weight, options.src_scale, options.dst_scale);
  if (!needs_record("spmm", out, {x, options.weight})) return out;
  const bool weight_wanted = options.weight.defined() && options.weight.requires_grad();
  attach("spmm", out, {x, options.weight},
         [graph, mean, x = Saved(weight_wanted ? x : Tensor()), weight = Saved(options.weight),
          src_scale = Saved(options.src_scale), dst_scale = Saved(options.dst_scale)](const Tensor& grad, Gradients& into) {
           if (into.wants(0))
             into.add(0, sum_edges(graph.transpose(), grad, false, weight.get(),
                                   row_factors(graph, mean, dst_scale.get(), grad.dtype()), src_scale.get()));
           if (into.wants(1)) into.add(1, scaled_dots(graph, grad, x.get(), mean, src_scale.get(), dst_scale.get()));
         });
  return out;
}

}  // namespace tessera
