// One product per relation, without a message per edge.
//
// Work goes by pairs: a relation and a node that has edges of it, ordered by relation, so that all pairs of a relation are
// consecutive rows of one grouped product. With K <= N a pair is (relation, destination):
//     h = sum of the pair's sources' rows of x; t = h weight[relation]; out[destination] += t
// else (relation, source), and rows are added up behind the product, where they are narrower:
//     h = x[source]; t = h weight[relation]; out[destination] += t along the pair's edges
// The backward pass is the same two steps mirrored, with the pairs of the same side; sums of x are made again instead of
// kept. Pairs are taken in blocks of relations (relational_state.h), in order, so an output row has one order of additions.

#include "tessera/sparse/relational_spmm.h"

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/grouped_matmul.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/gather.h"
#include "tessera/scatter/scatter_reduce_kernels.h"
#include "tessera/sparse/relational_state.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

/// 1 / divisor, for a mean.
Tensor reciprocal(const Tensor& divisor, DType dtype) {
  Tensor out = Tensor::empty(divisor.shape(), dtype);
  with_float(dtype, "relational_spmm", [&]<class T>() {
    const int32_t* n = divisor.data<int32_t>();
    T* to = out.mutable_data<T>();
    parallel_for(divisor.numel(), 1 << 15, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = T(1) / T(n[i]);
    });
  });
  return out;
}

/// 1 / (edges of the pair).
Tensor shares(const Graph& graph, DType dtype) {
  Tensor out = Tensor::empty(Shape{graph.num_dst()}, dtype);
  with_float(dtype, "relational_spmm", [&]<class T>() {
    const int64_t* rowptr = graph.rowptr().data<int64_t>();
    T* to = out.mutable_data<T>();
    for (int64_t p = 0; p < graph.num_dst(); ++p) to[p] = T(1) / T(rowptr[p + 1] - rowptr[p]);
  });
  return out;
}

/// A row for each pair: sums or means of the other side's rows.
Tensor pull(const RelationBlock& block, const Tensor& rows, bool mean) {
  if (!mean) return spmm(block.graph, rows);
  if (!block.divisor.defined()) return spmm(block.graph, rows, Reduce::mean);
  return spmm(block.graph, rows, Reduce::sum, {.weight = reciprocal(block.divisor, rows.dtype())});
}

void add_to(Tensor& out, const Tensor& more) {
  if (!out.defined()) {
    out = more;
    return;
  }
  with_float(out.dtype(), "relational_spmm", [&]<class T>() {
    T* to = out.mutable_data<T>();
    const T* from = more.data<T>();
    parallel_for(out.numel(), 1 << 16, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

/// Adds each pair's row to the other side along the pair's edges, as `pull` reversed.
void push(const RelationBlock& block, const Tensor& rows, bool mean, Tensor& out) {
  const Graph back = block.graph.transpose();
  SpmmOptions options;
  if (mean && block.divisor.defined()) options.weight = reciprocal(block.divisor, rows.dtype());
  if (mean && !block.divisor.defined()) options.src_scale = shares(block.graph, rows.dtype());
  add_to(out, spmm(back, rows, Reduce::sum, options));
}

/// Adds each pair's row to that of its node.
void add_by_node(const RelationBlock& block, const Tensor& rows, int64_t nodes, Tensor& out) {
  if (!out.defined()) out = zeros(Shape{nodes, rows.dim(1)}, rows.dtype(), rows.device());
  run<ScatterAddKernel>(rows.device(), {.is_double = rows.dtype() == DType::f64,
                                        .count = rows.dim(0),
                                        .rows = nodes,
                                        .width = rows.dim(1),
                                        .src = rows.raw(),
                                        .index32 = block.node.data<int32_t>(),
                                        .index64 = nullptr,
                                        .out = out.mutable_raw(),
                                        .counts = nullptr});
}

Tensor weights_of(const RelationBlock& block, const Tensor& weight) {
  return weight.view_rows(block.relation_begin, block.relation_end);
}

}  // namespace

Tensor relational_spmm(const RelationalGraph& graph, const Tensor& x, const Tensor& weight, Reduce reduce) {
  check(graph.defined(), "relational_spmm: the graph is undefined");
  check(x.defined() && weight.defined(), "relational_spmm: x or weight is undefined");
  check<Unsupported>(reduce == Reduce::sum || reduce == Reduce::mean,
                     "relational_spmm: reduce {} is not supported, use sum or mean", name(reduce));
  check<Unsupported>(x.dtype() == DType::f32 || x.dtype() == DType::f64,
                     "relational_spmm: dtype {} is not supported, use f32 or f64", x.dtype());
  check(x.ndim() == 2 && x.dim(0) == graph.num_src(),
        "relational_spmm: x has shape {} but the graph has {} sources, so it needs [{}, K]", x.shape(), graph.num_src(),
        graph.num_src());
  check(weight.ndim() == 3 && weight.dim(0) == graph.num_relations() && weight.dim(1) == x.dim(1),
        "relational_spmm: weight has shape {} but {} relations of rows of {} need [{}, {}, N]", weight.shape(),
        graph.num_relations(), x.dim(1), graph.num_relations(), x.dim(1));
  check(weight.dtype() == x.dtype(), "relational_spmm: weight is {} but x is {}", weight.dtype(), x.dtype());

  const bool mean = reduce == Reduce::mean, pull_first = x.dim(1) <= weight.dim(2);
  if (logs_dispatch())
    log_dispatch("relational_spmm {}: {} relations, {} edges; {}, as x has {} columns and the result {}", name(reduce),
                 graph.num_relations(), graph.num_edges(),
                 pull_first ? "sums of neighbours, then products" : "products, then sums of neighbours", x.dim(1),
                 weight.dim(2));
  Tensor out;
  {
    const NoGrad off;
    const Tensor rows = x.detach(), matrices = weight.detach();
    for (const RelationBlock& block : RelationalState::side(graph, pull_first).blocks) {
      const Tensor h = pull_first ? pull(block, rows, mean) : gather(rows, block.node);
      const Tensor t = grouped_matmul(h, block.offsets, weights_of(block, matrices));
      pull_first ? add_by_node(block, t, graph.num_dst(), out) : push(block, t, mean, out);
    }
    if (!out.defined()) out = zeros(Shape{graph.num_dst(), weight.dim(2)}, x.dtype(), x.device());
  }
  record("relational_spmm", out, {x, weight},
         [graph, mean, pull_first, x = Saved(x), weight = Saved(weight)](const Tensor& grad, Gradients& into) {
           const Tensor rows = x.get(), matrices = weight.get();
           Tensor grad_x, grad_weight;
           if (into.wants(1)) grad_weight = zeros(matrices.shape(), grad.dtype(), grad.device());
           for (const RelationBlock& block : RelationalState::side(graph, pull_first).blocks) {
             const Tensor g = pull_first ? gather(grad, block.node) : pull(block, grad, mean);
             if (into.wants(1)) {
               const Tensor h = pull_first ? pull(block, rows, mean) : gather(rows, block.node);
               Tensor part = weights_of(block, grad_weight);
               add_to(part, grouped_outer(h, block.offsets, g));
             }
             if (!into.wants(0)) continue;
             const Tensor t = grouped_matmul(g, block.offsets, weights_of(block, matrices), {.transpose_b = true});
             pull_first ? push(block, t, mean, grad_x) : add_by_node(block, t, graph.num_src(), grad_x);
           }
           if (into.wants(0))
             into.add(0, grad_x.defined() ? std::move(grad_x) : zeros(rows.shape(), grad.dtype(), grad.device()));
           if (into.wants(1)) into.add(1, std::move(grad_weight));
         });
  return out;
}

}  // namespace tessera
