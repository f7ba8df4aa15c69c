// Self loops and GCN normalisation, once per graph: each is a few passes over the rows, none sorts. The looped graph's rows
// are the old rows without their loops and with the node's own at the end, which is where a stable sort of the edge list
// (edges first, then loops) would put it.

#include "tessera/sparse/normalise.h"

#include <bit>
#include <cmath>
#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/index.h"
#include "tessera/core/parallel.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/graph_state.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 12;  // rows

void check_square(const char* op, const Graph& graph) {
  check(graph.defined(), "{}: the graph is undefined", op);
  check(graph.num_src() == graph.num_dst(), "{}: the graph has {} sources and {} destinations but needs as many of both", op,
        graph.num_src(), graph.num_dst());
}

void check_weight(const char* op, const Graph& graph, const Tensor& weight) {
  if (!weight.defined()) return;
  check(weight.ndim() == 1 && weight.dim(0) == graph.num_edges(),
        "{}: the weights have shape {} but the graph has {} edges, so they need [{}]", op, weight.shape(), graph.num_edges(),
        graph.num_edges());
  check<Unsupported>(weight.dtype() == DType::f32 || weight.dtype() == DType::f64,
                     "{}: dtype {} is not supported, use f32 or f64", op, weight.dtype());
}

/// The rows of a graph as plain arrays.
struct Rows {
  explicit Rows(const Graph& graph)
      : count(graph.num_dst()),
        rowptr(graph.rowptr().data<int64_t>()),
        col(graph.col().data<int32_t>()),
        edge_id(graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr) {}
  int64_t id(int64_t position) const { return edge_id != nullptr ? edge_id[position] : position; }
  int64_t count;
  const int64_t* rowptr;
  const int32_t* col;
  const int64_t* edge_id;
};

/// A set of edge ids that tells how many of its members lie below an id.
class IdSet {
 public:
  explicit IdSet(int64_t bound) : words_(size_t(bound / 64 + 1)), before_(words_.size()) {}
  void insert(int64_t id) { words_[size_t(id / 64)] |= uint64_t{1} << (id % 64); }
  void finish() {
    int64_t total = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
      before_[w] = total;
      total += std::popcount(words_[w]);
    }
  }
  int64_t below(int64_t id) const {
    const size_t w = size_t(id / 64);
    return before_[w] + std::popcount(words_[w] & ((uint64_t{1} << (id % 64)) - 1));
  }

 private:
  std::vector<uint64_t> words_;
  std::vector<int64_t> before_;
};

/// Weights of the looped graph from those of the graph: source_id's, or the fill. `weight` undefined: ones.
Tensor looped_weights(const Tensor& weight, const Tensor& source_id, double fill, DType dtype) {
  Tensor out = Tensor::empty(source_id.shape(), dtype);
  with_float(dtype, "add_remaining_self_loops", [&]<class T>() {
    const T* from = weight.defined() ? weight.data<T>() : nullptr;
    const int64_t* source = source_id.data<int64_t>();
    T* to = out.mutable_data<T>();
    parallel_for(out.numel(), 1 << 15, [=](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) to[e] = source[e] < 0 ? T(fill) : from != nullptr ? from[source[e]] : T(1);
    });
  });
  if (!weight.defined()) return out;
  record("add_remaining_self_loops", out, {weight},
         [source_id = Saved(source_id), shape = weight.shape()](const Tensor& grad, Gradients& into) {
           Tensor back = zeros(shape, grad.dtype());
           with_float(grad.dtype(), "add_remaining_self_loops", [&]<class T>() {
             const T* from = grad.data<T>();
             const int64_t* source = source_id.get().data<int64_t>();
             T* to = back.mutable_data<T>();
             parallel_for(grad.numel(), 1 << 15, [=](int64_t begin, int64_t end) {
               for (int64_t e = begin; e < end; ++e)
                 if (source[e] >= 0) to[source[e]] = from[e];
             });
           });
           into.add(0, std::move(back));
         });
  return out;
}

/// deg^-1/2, 0 for 0, of each destination; `degree` gives row d's degree.
template <class T, class F>
Tensor inverse_roots(int64_t count, const F& degree) {
  Tensor out = Tensor::empty(Shape{count}, dtype_of<T>);
  T* roots = out.mutable_data<T>();
  parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      const double deg = degree(d);
      roots[d] = deg < 0 ? T(-1) : deg == 0 ? T(0) : T(1 / std::sqrt(deg));
    }
  });
  for (int64_t d = 0; d < count; ++d)
    if (roots[d] < 0) fail("gcn_norm: node {} has degree {} but needs at least 0 for its square root", d, degree(d));
  return out;
}

Tensor normalised_weights(const Graph& graph, const Tensor& weight) {
  Tensor out = Tensor::empty(weight.shape(), weight.dtype()), roots;
  with_float(weight.dtype(), "gcn_norm", [&]<class T>() {
    const Rows rows(graph);
    const T* w = weight.data<T>();
    roots = inverse_roots<T>(rows.count, [&](int64_t d) {
      double sum = 0;
      for (int64_t i = rows.rowptr[d]; i < rows.rowptr[d + 1]; ++i) sum += double(w[rows.id(i)]);
      return sum;
    });
    const T* root = roots.data<T>();
    T* to = out.mutable_data<T>();
    parallel_for(rows.count, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t d = begin; d < end; ++d)
        for (int64_t i = rows.rowptr[d]; i < rows.rowptr[d + 1]; ++i)
          to[rows.id(i)] = root[rows.col[i]] * w[rows.id(i)] * root[d];
    });
  });
  // With r = deg^-1/2: d(weight'[e])/d(weight[e]) = r[s] r[d], and through the degrees
  // d(loss)/d(deg[i]) = -r[i]^3 / 2 * (sum over edges into i of g w r[s] + sum over edges out of i of g w r[d]).
  record("gcn_norm", out, {weight},
         [graph, weight = Saved(weight), roots = Saved(roots)](const Tensor& grad, Gradients& into) {
           Tensor back = Tensor::empty(grad.shape(), grad.dtype());
           with_float(grad.dtype(), "gcn_norm", [&]<class T>() {
             const Graph reversed = graph.transpose();
             const Rows in(graph), out_of(reversed);
             const T* w = weight.get().data<T>();
             const T* root = roots.get().data<T>();
             const T* g = grad.data<T>();
             T* to = back.mutable_data<T>();
             parallel_for(in.count, kGrain, [&](int64_t begin, int64_t end) {
               for (int64_t node = begin; node < end; ++node) {
                 double sum = 0;
                 for (const Rows* rows : {&in, &out_of})
                   for (int64_t i = rows->rowptr[node]; i < rows->rowptr[node + 1]; ++i)
                     sum += double(g[rows->id(i)]) * double(w[rows->id(i)]) * double(root[rows->col[i]]);
                 const double r = double(root[node]), by_degree = -0.5 * r * r * r * sum;
                 for (int64_t i = in.rowptr[node]; i < in.rowptr[node + 1]; ++i)
                   to[in.id(i)] = T(double(g[in.id(i)]) * double(root[in.col[i]]) * r + by_degree);
               }
             });
           });
           into.add(0, std::move(back));
         });
  return out;
}

}  // namespace

LoopedGraph add_remaining_self_loops(const Graph& graph, const Tensor& weight, double loop_weight, DType dtype) {
  check_square("add_remaining_self_loops", graph);
  check_weight("add_remaining_self_loops", graph, weight);
  const Rows rows(graph);
  const int64_t nodes = rows.count;

  // Where each row goes, and the loop that counts: the last one by id.
  Tensor rowptr = Tensor::empty(Shape{nodes + 1}, DType::i64);
  int64_t* offsets = rowptr.mutable_data<int64_t>();
  Scratch<int64_t> loop_id(nodes);
  parallel_for(nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      int64_t kept = 1, loop = -1;
      for (int64_t i = rows.rowptr[d]; i < rows.rowptr[d + 1]; ++i) {
        if (rows.col[i] == d)
          loop = std::max(loop, rows.id(i));
        else
          ++kept;
      }
      loop_id[d] = loop;
      offsets[d + 1] = kept;
    }
  });
  offsets[0] = 0;
  bool any_loop = false;
  for (int64_t d = 0; d < nodes; ++d) {
    offsets[d + 1] += offsets[d];
    any_loop = any_loop || loop_id[d] >= 0;
  }
  const int64_t count = offsets[nodes], others = count - nodes;
  IdSet loops(any_loop ? graph.num_edges() : 0);
  if (any_loop) {
    for (int64_t d = 0; d < nodes; ++d)
      for (int64_t i = rows.rowptr[d]; loop_id[d] >= 0 && i < rows.rowptr[d + 1]; ++i)
        if (rows.col[i] == d) loops.insert(rows.id(i));
    loops.finish();
  }

  Tensor col = Tensor::empty(Shape{count}, DType::i32), edge_id = Tensor::empty(Shape{count}, DType::i64),
         source_id = Tensor::empty(Shape{count}, DType::i64);
  int32_t* columns = col.mutable_data<int32_t>();
  int64_t* ids = edge_id.mutable_data<int64_t>();
  int64_t* sources = source_id.mutable_data<int64_t>();
  parallel_for(nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d) {
      int64_t at = offsets[d];
      for (int64_t i = rows.rowptr[d]; i < rows.rowptr[d + 1]; ++i) {
        if (rows.col[i] == d) continue;
        const int64_t old_id = rows.id(i), new_id = any_loop ? old_id - loops.below(old_id) : old_id;
        columns[at] = rows.col[i];
        ids[at++] = new_id;
        sources[new_id] = old_id;
      }
      columns[at] = int32_t(d);
      ids[at] = others + d;
      sources[others + d] = loop_id[d];
    }
  });
  LoopedGraph out{GraphState::make(nodes, nodes, rowptr, col, edge_id), {}, source_id};
  if (weight.defined() || loop_weight != 1)
    out.weight = looped_weights(weight, source_id, loop_weight, weight.defined() ? weight.dtype() : dtype);
  return out;
}

const LoopedGraph& with_self_loops(const Graph& graph) {
  check_square("with_self_loops", graph);
  // The looped graph is another one, so keeping it on this one makes no cycle.
  const std::shared_ptr<const void>& kept = GraphState::of(graph).looped.get(
      [&]() -> std::shared_ptr<const void> { return std::make_shared<const LoopedGraph>(add_remaining_self_loops(graph)); });
  return *static_cast<const LoopedGraph*>(kept.get());
}

Tensor looped_features(const Graph& graph, const Tensor& features, const std::optional<double>& fill) {
  check_square("looped_features", graph);
  check(features.ndim() == 2 && features.dim(0) == graph.num_edges(),
        "looped_features: features have shape {} but {} edges need [{}, D]", features.shape(), graph.num_edges(),
        graph.num_edges());
  const LoopedGraph& looped = with_self_loops(graph);
  const int64_t nodes = graph.num_dst(), others = looped.graph.num_edges() - nodes;
  const Tensor kept = index_select(features, looped.source_id.view_rows(0, others));
  if (fill) return concat({kept, full(Shape{nodes, features.dim(1)}, *fill, features.dtype())});
  Tensor dst = Tensor::empty(Shape{others}, DType::i32);
  int32_t* to = dst.mutable_data<int32_t>();
  const Rows rows(looped.graph);
  parallel_for(nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t d = begin; d < end; ++d)
      for (int64_t i = rows.rowptr[d]; i < rows.rowptr[d + 1]; ++i)
        if (rows.id(i) < others) to[rows.id(i)] = int32_t(d);
  });
  return concat({kept, segment_reduce(kept, SegmentPlan::from_index(dst, nodes), Reduce::mean)});
}

namespace {

GcnNorm computed_norm(const Graph& graph, const Tensor& edge_weight, const GcnNormOptions& options) {
  LoopedGraph looped{graph, edge_weight, {}};
  if (options.add_self_loops)
    looped = !edge_weight.defined() && options.loop_weight == 1
                 ? with_self_loops(graph)
                 : add_remaining_self_loops(graph, edge_weight, options.loop_weight, options.dtype);
  if (looped.weight.defined()) return {looped.graph, {}, normalised_weights(looped.graph, looped.weight)};
  const Rows rows(looped.graph);
  GcnNorm norm{looped.graph, {}, {}};
  with_float(options.dtype, "gcn_norm", [&]<class T>() {
    norm.scale = inverse_roots<T>(rows.count, [&](int64_t d) { return double(rows.rowptr[d + 1] - rows.rowptr[d]); });
  });
  return norm;
}

}  // namespace

GcnNorm gcn_norm(const Graph& graph, const Tensor& edge_weight, const GcnNormOptions& options) {
  check_square("gcn_norm", graph);
  check_weight("gcn_norm", graph, edge_weight);
  // The looped graph is another one, so keeping it on this one makes no cycle.
  const bool usual =
      !edge_weight.defined() && options.add_self_loops && options.loop_weight == 1 && options.dtype == DType::f32;
  if (!usual) return computed_norm(graph, edge_weight, options);
  const std::shared_ptr<const void>& kept = GraphState::of(graph).gcn_norm.get(
      [&]() -> std::shared_ptr<const void> { return std::make_shared<const GcnNorm>(computed_norm(graph, {}, options)); });
  return *static_cast<const GcnNorm*>(kept.get());
}

}  // namespace tessera
