#include "tessera/layers/pool/diff_pool.h"

#include <algorithm>
#include <vector>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/grouped_matmul.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"
#include "tessera/scatter/segment_reduce.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

/// a_g^T c_g for the rows of each graph g: (G, K, M) of a (N, K) and c (N, M). Gradients: both.
Tensor outer(const Tensor& a, const Tensor& offsets, const Tensor& c) {
  Tensor out = grouped_outer(a.detach(), offsets, c.detach());
  record("diff_pool", out, {a, c}, [a = Saved(a), c = Saved(c), offsets](const Tensor& grad, Gradients& into) {
    if (into.wants(0)) into.add(0, grouped_matmul(c.get(), offsets, grad, {.transpose_b = true}));
    if (into.wants(1)) into.add(1, grouped_matmul(a.get(), offsets, grad));
  });
  return out;
}

/// The edges, by id, of each pair of nodes that some edge joins.
SegmentPlan edges_by_pair(const Graph& graph) {
  const int64_t* rowptr = graph.rowptr().data<int64_t>();
  const int32_t* col = graph.col().data<int32_t>();
  const int64_t* id = graph.edge_id().defined() ? graph.edge_id().data<int64_t>() : nullptr;
  Tensor pair = Tensor::empty(Shape{graph.num_edges()}, DType::i32);
  int32_t* to = pair.mutable_data<int32_t>();
  std::vector<int64_t> row_of(static_cast<size_t>(graph.num_src()), -1);  // the last row that met a source
  std::vector<int32_t> pair_of(static_cast<size_t>(graph.num_src()));
  int32_t pairs = 0;
  for (int64_t d = 0; d < graph.num_dst(); ++d)
    for (int64_t k = rowptr[d]; k < rowptr[d + 1]; ++k) {
      const size_t s = size_t(col[k]);
      if (row_of[s] != d) {
        row_of[s] = d;
        pair_of[s] = pairs++;
      }
      to[id != nullptr ? id[k] : k] = pair_of[s];
    }
  return SegmentPlan::from_index(pair, pairs);
}

Tensor entropy_of(const Tensor& assigned) { return mul(neg(assigned), log(shift(assigned, 1e-15))); }

}  // namespace

DiffPooled dense_diff_pool(const Tensor& x, const Tensor& adj, const Tensor& s, const Tensor& mask, bool normalize) {
  check(x.ndim() == 3 && adj.ndim() == 3 && s.ndim() == 3,
        "dense_diff_pool: x, adj and s have shapes {}, {} and {} but need three dimensions", x.shape(), adj.shape(),
        s.shape());
  const int64_t graphs = x.dim(0), nodes = x.dim(1);
  check(adj.shape() == (Shape{graphs, nodes, nodes}), "dense_diff_pool: adj has shape {} but needs {}", adj.shape(),
        Shape{graphs, nodes, nodes});
  check(s.dim(0) == graphs && s.dim(1) == nodes, "dense_diff_pool: s has shape {} but needs [{}, {}, K]", s.shape(), graphs,
        nodes);
  Tensor assigned = softmax(s, 2), features = x;
  if (mask.defined()) {
    check(mask.shape() == (Shape{graphs, nodes}), "dense_diff_pool: mask has shape {} but needs {}", mask.shape(),
          Shape{graphs, nodes});
    const Tensor column = reshape(mask, Shape{graphs, nodes, 1});
    assigned = mul(assigned, column);
    features = mul(features, column);
  }
  DiffPooled out;
  out.x = batched_matmul(assigned, features, {.transpose_a = true});
  out.adj = batched_matmul(assigned, batched_matmul(adj, assigned), {.transpose_a = true});
  out.link_loss = norm(sub(adj, batched_matmul(assigned, assigned, {.transpose_b = true})));
  if (normalize) out.link_loss = scale(out.link_loss, 1 / double(adj.numel()));
  out.entropy_loss = mean(sum(entropy_of(assigned), 2));
  return out;
}

DiffPooled diff_pool(const Tensor& x, const Tensor& s, const Graph& graph, const SegmentPlan& nodes,
                     const Tensor& edge_weight, bool normalize) {
  check(graph.defined() && nodes.defined() && graph.num_src() == graph.num_dst() && graph.num_src() == nodes.num_rows(),
        "diff_pool: the graph needs to be square, with a row of nodes for each of its nodes");
  check(!nodes.order().defined(), "diff_pool: the nodes of a graph need to be consecutive");
  const int64_t count = nodes.num_rows(), graphs = nodes.num_segments();
  check(x.ndim() == 2 && x.dim(0) == count, "diff_pool: x has shape {} but needs [{}, C]", x.shape(), count);
  check(s.ndim() == 2 && s.dim(0) == count, "diff_pool: s has shape {} but needs [{}, K]", s.shape(), count);
  const Tensor &offsets = nodes.offsets(), assigned = softmax(s, 1);
  const int64_t clusters = s.dim(1);
  DiffPooled out;
  out.x = outer(assigned, offsets, x);
  out.adj = outer(assigned, offsets, spmm(graph.transpose(), assigned, Reduce::sum, {.weight = edge_weight}));

  // Edges of one pair are one entry of A.
  const Tensor weight = edge_weight.defined() ? edge_weight : ones(Shape{graph.num_edges()}, x.dtype());
  const Tensor of_adj = sum(square(segment_reduce(weight, edges_by_pair(graph))));
  Tensor diagonal = zeros(Shape{clusters, clusters}, x.dtype());
  with_float(x.dtype(), "diff_pool", [&]<class T>() {
    for (int64_t k = 0; k < clusters; ++k) diagonal.mutable_data<T>()[k * (clusters + 1)] = T(1);
  });
  const Tensor trace = sum(mul(out.adj, diagonal)), of_assigned = sum(square(outer(assigned, offsets, assigned)));
  out.link_loss = sqrt(clamp(add(sub(of_adj, scale(trace, 2)), of_assigned), 1e-20, 1e300));
  int64_t largest = 0;
  for (int64_t g = 0; g < graphs; ++g)
    largest = std::max(largest, offsets.data<int64_t>()[g + 1] - offsets.data<int64_t>()[g]);
  const double padded = double(std::max<int64_t>(graphs * largest, 1));
  if (normalize) out.link_loss = scale(out.link_loss, 1 / (padded * double(std::max<int64_t>(largest, 1))));
  out.entropy_loss = scale(sum(entropy_of(assigned)), 1 / padded);
  return out;
}

}  // namespace tessera
