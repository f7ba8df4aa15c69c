#include "tessera/sparse/spmm.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/log.h"
#include "tessera/core/ops/activation.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/storage16.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/rows.h"
#include "tessera/sparse/graph_state.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/sparse/source_blocks.h"
#include "tessera/sparse/spmm_kernels.h"

namespace tessera {
namespace {

/// The type that elements of `dtype` are computed in, which their factors have.
DType computed_in(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

const void* raw_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.raw() : nullptr; }

void check_dtype(const char* what, const Tensor& factor, DType x) {
  check(factor.dtype() == computed_in(x) || size_of(x) > 2, "spmm: {} is {} but x is {}, so it needs f32", what,
        factor.dtype(), x);
  check(factor.dtype() == computed_in(x), "spmm: {} is {} but x is {}", what, factor.dtype(), x);
}

void check_scale(const char* what, const Tensor& scale, const char* of, int64_t count, DType x) {
  if (!scale.defined()) return;
  check(scale.ndim() == 1 && scale.dim(0) == count, "spmm: {} has shape {} but the graph has {} {}, so it needs [{}]", what,
        scale.shape(), count, of, count);
  check_dtype(what, scale, x);
  check<Unsupported>(!scale.requires_grad(), "spmm: {} requires a gradient, which only x, weight and bias get", what);
}

/// Heads that share x's columns: 1 without weights or with one for an edge.
int64_t checked_heads(const Tensor& weight, const Tensor& x, int64_t edges) {
  if (!weight.defined()) return 1;
  check((weight.ndim() == 1 || weight.ndim() == 2) && weight.dim(0) == edges,
        "spmm: weight has shape {} but the graph has {} edges, so it needs [{}] or [{}, H]", weight.shape(), edges, edges,
        edges);
  check_dtype("weight", weight, x.dtype());
  if (weight.ndim() == 1) return 1;
  const int64_t heads = weight.dim(1);
  const bool fits = x.ndim() == 3 ? heads == x.dim(1) : heads > 0 && x.dim(1) % heads == 0;
  check(fits && heads > 0, "spmm: weight has shape {}, but x has shape {}, which cannot be shared by {} heads",
        weight.shape(), x.shape(), heads);
  return heads;
}

/// What is done with x, but for the graph and the reduction.
struct Terms {
  Tensor weight, src_scale, dst_scale;
  bool mean = false;
  Tensor bias{};
  bool relu = false;

  int64_t heads() const { return weight.defined() && weight.ndim() == 2 ? weight.dim(1) : 1; }
};

SpmmArgs args_of(const Graph& graph, const Tensor& x, const Terms& terms, Tensor& out, void* partials) {
  const Schedule& schedule = GraphState::schedule_of(graph);
  return {.type = float_type("spmm", x.dtype()),
          .rows = graph.num_dst(),
          .num_edges = graph.num_edges(),
          .width = row_width(x),
          .rowptr = graph.rowptr().data<int64_t>(),
          .col = graph.col().data<int32_t>(),
          .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
          .chunks = schedule.chunks.data(),
          .num_chunks = int64_t(schedule.chunks.size()),
          .hubs = schedule.hubs.data(),
          .num_hubs = int64_t(schedule.hubs.size()),
          .x = x.raw(),
          .x_rows = x.dim(0),
          .weight = raw_or_null(terms.weight),
          .heads = terms.heads(),
          .src_scale = raw_or_null(terms.src_scale),
          .dst_scale = raw_or_null(terms.dst_scale),
          .mean = terms.mean,
          .bias = raw_or_null(terms.bias),
          .relu = terms.relu,
          .out = out.mutable_raw(),
          .partials = partials};
}

Tensor empty_result(const Graph& graph, const Tensor& x) {
  return Tensor::empty(x.shape().with(0, graph.num_dst()), x.dtype(), x.device());
}

/// Bytes of the partial results of hubs.
int64_t partial_bytes(const Graph& graph, const Tensor& x) {
  return GraphState::schedule_of(graph).slots * row_width(x) * int64_t(size_of(computed_in(x.dtype())));
}

/// The line of TESSERA_LOG=dispatch.
void log_choice(const char* reduce, const SpmmArgs& k, const std::string& how) {
  const int64_t row_bytes = k.width * (k.type == FloatType::f64 ? 8 : k.type == FloatType::f32 ? 4 : 2);
  const Fetch fetch = fetch_of(k.x_rows * row_bytes);
  const int64_t ahead = fetch_distance(fetch, std::clamp<int64_t>(row_bytes / 64, 1, 4));
  log_dispatch("spmm {}: cpu {}, {} threads; {} rows, {} edges, {} bytes a row of x; {} chunks, {} hubs cut in {}; {}; {}",
               reduce, name(active_isa()), threads(), k.rows, k.num_edges, row_bytes, k.num_chunks, k.num_hubs,
               k.num_hubs > 0 ? k.hubs[k.num_hubs - 1].slot_end : 0,
               fetch == Fetch::none   ? std::string("rows not prefetched, they fit the second-level cache")
               : fetch == Fetch::near ? "rows prefetched " + std::to_string(ahead) + " edges ahead to the first level"
                                      : "rows prefetched " + std::to_string(ahead) + " edges ahead to the second level",
               how);
}

/// Forward of a sum or a mean, without checks or history.
Tensor sum_edges(const Graph& graph, const Tensor& x, const Terms& terms) {
  Tensor out = empty_result(graph, x);
  Scratch<char> partials(partial_bytes(graph, x));
  const SpmmArgs args = args_of(graph, x, terms, out, partials.data());
  const bool together = args.heads > 1 && args.width / args.heads % 4 == 0;
  const char* why_whole = terms.weight.defined() ? "edges have weights" : "elements are not f32";
  std::shared_ptr<const SourceBlocks> blocks;
  if (!terms.weight.defined() && x.dtype() == DType::f32) blocks = source_blocks(graph, args.width, &why_whole);
  if (logs_dispatch() && blocks != nullptr)
    log_dispatch("spmm {}: cpu {}, {} threads; {} rows, {} edges, {} bytes a row of x; {} runs; by {} blocks of {} sources",
                 terms.mean ? "mean" : "sum", name(active_isa()), threads(), args.rows, args.num_edges,
                 args.width * int64_t(sizeof(float)), blocks->runs.size(), blocks->block_chunks.size() - 1, kSourceBlock);
  else if (logs_dispatch())
    log_choice(terms.mean ? "mean" : "sum", args,
               together         ? std::string("all heads at once")
               : args.heads > 1 ? "one head at a time, as a head's columns are no multiple of 4"
                                : std::string("whole rows, as ") + why_whole);
  Scratch<float> panel(blocks != nullptr ? kSourceBlock * SpmmBlockedKernel::kPanel : 0);
  if (blocks != nullptr)
    run<SpmmBlockedKernel>(x.device(), {.spmm = args,
                                        .source = blocks->source.data(),
                                        .runs = blocks->runs.data(),
                                        .chunks = blocks->chunks.data(),
                                        .block_chunks = blocks->block_chunks.data(),
                                        .num_blocks = int64_t(blocks->block_chunks.size()) - 1,
                                        .panel = panel.data()});
  else if (together)
    run<SpmmHeadsKernel>(x.device(), args);
  else if (size_of(x.dtype()) == 2)
    run<SpmmHalfKernel>(x.device(), args);
  else
    run<SpmmKernel>(x.device(), args);
  return out;
}

/// Forward of a maximum or a minimum; with the winners' places if they are asked for.
Tensor best_edges(const Graph& graph, const Tensor& x, bool smallest, const Terms& terms, Tensor* winner) {
  Tensor out = empty_result(graph, x);
  Scratch<char> partials(partial_bytes(graph, x));
  Scratch<int32_t> partial_winners(winner != nullptr ? GraphState::schedule_of(graph).slots * row_width(x) : 0);
  if (winner != nullptr) *winner = Tensor::empty(out.shape(), DType::i32, x.device());
  const SpmmArgs args = args_of(graph, x, terms, out, partials.data());
  if (logs_dispatch())
    log_choice(smallest ? "min" : "max", args, winner != nullptr ? "winners kept for the gradient" : "no winners kept");
  run<SpmmMaxKernel>(x.device(), {.spmm = args,
                                  .smallest = smallest,
                                  .winner = winner != nullptr ? winner->mutable_data<int32_t>() : nullptr,
                                  .partial_winners = partial_winners.data()});
  return out;
}

/// The same graph with each row in the order of edge ids, in which the first of equals is the one that a maximum takes.
/// Undefined when its rows are in that order, as they are unless columns were sorted or the graph transposed.
Graph sorted_by_id(const Graph& graph) {
  if (!graph.edge_id().defined()) return {};
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int64_t* id = graph.edge_id().data<int64_t>();
  const int64_t grain = graph.num_dst() / (graph.num_edges() / (1 << 15) + 1) + 1;
  std::atomic<bool> sorted{true};
  parallel_for(graph.num_dst(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end && sorted.load(std::memory_order_relaxed); ++d)
      if (!std::is_sorted(id + rowptr[d], id + rowptr[d + 1])) sorted.store(false, std::memory_order_relaxed);
  });
  if (sorted) return {};
  Tensor col = Tensor::empty(graph.col().shape(), DType::i32), edge_id = Tensor::empty(graph.col().shape(), DType::i64);
  const int32_t* from = graph.col().data<int32_t>();
  int32_t* to = col.mutable_data<int32_t>();
  int64_t* to_id = edge_id.mutable_data<int64_t>();
  parallel_for(graph.num_dst(), grain, [=](int64_t begin, int64_t end) {
    std::vector<int64_t> order;
    for (int64_t d = begin; d < end; ++d) {
      order.resize(size_t(rowptr[d + 1] - rowptr[d]));
      std::iota(order.begin(), order.end(), rowptr[d]);
      std::sort(order.begin(), order.end(), [id](int64_t a, int64_t b) { return id[a] < id[b]; });
      int64_t at = rowptr[d];
      for (const int64_t k : order) {
        to[at] = from[k];
        to_id[at++] = id[k];
      }
    }
  });
  return GraphState::make(graph.num_src(), graph.num_dst(), graph.rowptr(), col, edge_id);
}

/// `graph` for a maximum.
Graph in_id_order(const Graph& graph) {
  for (const Hub& hub : GraphState::schedule_of(graph).hubs) {
    const int64_t* rowptr = graph.rowptr().data<int64_t>();
    const int64_t n = rowptr[hub.row + 1] - rowptr[hub.row];
    check<Unsupported>(n <= std::numeric_limits<int32_t>::max(),
                       "spmm: destination {} has {} edges but max and min can choose among at most 2147483647", hub.row, n);
  }
  const Graph& sorted = GraphState::of(graph).in_id_order.get([&] { return sorted_by_id(graph); });
  return sorted.defined() ? sorted : graph;
}

/// Gradients of a maximum by its winners: of x unless `weight_grad`, else of the weights.
Tensor winner_gradient(const Graph& graph, const Tensor& grad, const Tensor& winner, const Tensor& x, const Terms& terms,
                       bool weight_grad) {
  const int64_t width = row_width(grad);
  Tensor out = weight_grad ? zeros(terms.weight.shape(), terms.weight.dtype(), grad.device())
                           : zeros(grad.shape().with(0, graph.num_src()), computed_in(grad.dtype()), grad.device());
  run<SpmmMaxGradKernel>(grad.device(), {.type = float_type("spmm", grad.dtype()),
                                         .rows = graph.num_dst(),
                                         .width = width,
                                         .heads = terms.heads(),
                                         .rowptr = graph.rowptr().data<int64_t>(),
                                         .col = graph.col().data<int32_t>(),
                                         .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
                                         .grad = grad.raw(),
                                         .winner = winner.data<int32_t>(),
                                         .x = raw_or_null(x),
                                         .weight = raw_or_null(terms.weight),
                                         .src_scale = raw_or_null(terms.src_scale),
                                         .dst_scale = raw_or_null(terms.dst_scale),
                                         .x_rows = graph.num_src(),
                                         .x_grad = weight_grad ? nullptr : out.mutable_raw(),
                                         .weight_grad = weight_grad ? out.mutable_raw() : nullptr});
  return cast(out, weight_grad ? out.dtype() : grad.dtype());
}

Tensor as_matrix(const Tensor& x) { return x.view_as(Shape{x.dim(0), row_width(x)}); }

/// Gradient of the weights of a sum or mean: dot products, of rows in the type that is computed in.
Tensor weight_gradient(const Graph& graph, const Tensor& grad_out, const Tensor& x_saved, const Terms& terms) {
  const Tensor grad = cast(as_matrix(grad_out), computed_in(x_saved.dtype())),
               x = cast(as_matrix(x_saved), computed_in(x_saved.dtype()));
  if (terms.heads() == 1)
    return scaled_dots(graph, grad, x, terms.mean, terms.src_scale, terms.dst_scale).view_as(terms.weight.shape());
  const Schedule& schedule = GraphState::schedule_of(graph);
  Tensor out = Tensor::empty(terms.weight.shape(), terms.weight.dtype(), x.device());
  run<HeadDotsKernel>(x.device(), {.is_double = x.dtype() == DType::f64,
                                   .mean = terms.mean,
                                   .num_edges = graph.num_edges(),
                                   .width = x.dim(1),
                                   .heads = terms.heads(),
                                   .rowptr = graph.rowptr().data<int64_t>(),
                                   .col = graph.col().data<int32_t>(),
                                   .edge_id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr,
                                   .chunks = schedule.chunks.data(),
                                   .num_chunks = int64_t(schedule.chunks.size()),
                                   .grad = grad.raw(),
                                   .x = x.raw(),
                                   .x_rows = x.dim(0),
                                   .src_scale = raw_or_null(terms.src_scale),
                                   .dst_scale = raw_or_null(terms.dst_scale),
                                   .out = out.mutable_raw()});
  return out;
}

/// grad where the result y of a relu is above 0, else 0.
Tensor through_relu(const Tensor& y, const Tensor& grad) {
  const auto apply = [](const Tensor& result, const Tensor& g) { return activation_gradient(Activation::relu, result, g); };
  return is_storage16(y.dtype()) ? through_f32(y, grad, apply) : apply(y, grad);
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

Tensor spmm(const Graph& given, const Tensor& x, Reduce reduce, const SpmmOptions& options) {
  check(given.defined(), "spmm: the graph is undefined");
  check(x.defined(), "spmm: x is undefined");
  float_type("spmm", x.dtype());
  check<Unsupported>(reduce != Reduce::mul, "spmm: reduce {} is not supported, use sum, mean, max or min", name(reduce));
  check((x.ndim() == 2 || x.ndim() == 3) && x.dim(0) == given.num_src(),
        "spmm: x has shape {} but the graph has {} sources, so it needs [{}, F]", x.shape(), given.num_src(),
        given.num_src());
  checked_heads(options.weight, x, given.num_edges());
  check_scale("src_scale", options.src_scale, "sources", given.num_src(), x.dtype());
  check_scale("dst_scale", options.dst_scale, "destinations", given.num_dst(), x.dtype());
  if (options.bias.defined()) {
    check(options.bias.ndim() == 1 && options.bias.dim(0) == row_width(x),
          "spmm: bias has shape {} but x has {} columns, so it needs [{}]", options.bias.shape(), row_width(x),
          row_width(x));
    check_dtype("bias", options.bias, x.dtype());
  }
  check<Unsupported>(options.activation == Activation::none || options.activation == Activation::relu,
                     "spmm: this activation is not supported, use none or relu");

  const bool best = reduce == Reduce::max || reduce == Reduce::min;
  const Graph graph = best ? in_id_order(given) : given;
  const Terms terms{options.weight,         options.src_scale, options.dst_scale,
                    reduce == Reduce::mean, options.bias,      options.activation == Activation::relu};
  Tensor probe = x.detach(), winner;
  const bool keeps_winners = best && needs_record("spmm", probe, {x, options.weight});
  Tensor out = best ? best_edges(graph, x, reduce == Reduce::min, terms, keeps_winners ? &winner : nullptr)
                    : sum_edges(graph, x, terms);
  if (!needs_record("spmm", out, {x, options.weight, options.bias})) return out;

  const bool weight_wanted = options.weight.defined() && options.weight.requires_grad();
  attach("spmm", out, {x, options.weight, options.bias},
         [graph, mean = terms.mean, winner, x = Saved(weight_wanted ? x : Tensor()), weight = Saved(options.weight),
          src_scale = Saved(options.src_scale), dst_scale = Saved(options.dst_scale),
          y = Saved(terms.relu ? out : Tensor())](const Tensor& grad_out, Gradients& into) {
           const Tensor grad = y.defined() ? through_relu(y.get(), grad_out) : grad_out;
           const Terms factors{weight.get(), src_scale.get(), dst_scale.get(), mean};
           if (into.wants(2)) into.add(2, sum_rows(cast(as_matrix(grad), computed_in(grad.dtype()))));
           if (winner.defined()) {
             if (into.wants(0)) into.add(0, winner_gradient(graph, grad, winner, {}, factors, false));
             if (into.wants(1)) into.add(1, winner_gradient(graph, grad, winner, x.get(), factors, true));
             return;
           }
           if (into.wants(0)) {
             const Tensor row_scale = row_factors(graph, mean, factors.dst_scale, computed_in(grad.dtype()));
             into.add(0, sum_edges(graph.transpose(), grad, {factors.weight, row_scale, factors.src_scale}));
           }
           if (into.wants(1)) into.add(1, weight_gradient(graph, grad, x.get(), factors));
         });
  return out;
}

}  // namespace tessera
