#include "tessera/layers/pool/top_k_pooling.h"

#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/index.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/unary.h"
#include "tessera/layers/init.h"
#include "tessera/scatter/segment_softmax.h"
#include "tessera/sparse/subgraph.h"

namespace tessera {

Pooled pool_by_score(const Tensor& x, const Tensor& raw, const Tensor& scale_by, const Graph& graph,
                     const SegmentPlan& nodes, const PoolOptions& options) {
  check(x.ndim() == 2 && x.dim(0) == graph.num_src() && x.dim(0) == nodes.num_rows(),
        "pooling: x has shape {} but the graph has {} nodes and nodes has {} rows", x.shape(), graph.num_src(),
        nodes.num_rows());
  Tensor score;
  Selection chosen;
  if (options.min_score) {
    score = segment_softmax(raw, nodes);
    chosen = select_above(score, nodes, *options.min_score);
  } else {
    score = tanh(scale_by.defined() ? div(raw, norm(scale_by)) : raw);
    chosen = select_top(score, nodes, options.ratio);
  }
  Pooled out;
  out.perm = chosen.perm;
  out.nodes = chosen.nodes;
  out.score = index_select(score, chosen.perm);
  out.x = mul(index_select(x, chosen.perm), reshape(out.score, Shape{out.score.dim(0), 1}));
  if (options.multiplier != 1) out.x = scale(out.x, options.multiplier);
  Subgraph rest = induced_subgraph(graph, chosen.perm);
  out.graph = std::move(rest.graph);
  out.edge_id = std::move(rest.edge_id);
  return out;
}

TopKPooling::TopKPooling(int64_t channels, Generator& generator, PoolOptions given) : options(given) {
  select.weight = uniform_fan_in(Shape{1, channels}, channels, generator);
}

Pooled TopKPooling::operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes) const {
  const Tensor raw = matmul(x, select.weight, {.transpose_b = true});
  return pool_by_score(x, reshape(raw, Shape{x.dim(0)}), select.weight, graph, nodes, options);
}

}  // namespace tessera
