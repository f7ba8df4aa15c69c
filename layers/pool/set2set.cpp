#include "tessera/layers/pool/set2set.h"

#include <numeric>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/lstm.h"
#include "tessera/layers/init.h"
#include "tessera/scatter/segment_softmax.h"
#include "tessera/sparse/sddmm.h"
#include "tessera/sparse/spmm.h"

namespace tessera {
namespace {

/// An edge from each node to its graph; ids are the nodes'.
Graph membership(const SegmentPlan& nodes) {
  Tensor index = Tensor::empty(Shape{nodes.num_rows()}, DType::i32);
  std::iota(index.mutable_data<int32_t>(), index.mutable_data<int32_t>() + nodes.num_rows(), 0);
  if (!nodes.order().defined()) return Graph::from_csr(nodes.offsets(), index, nodes.num_rows());
  return Graph::from_coo(index, nodes.segment_of_row(), nodes.num_rows(), nodes.num_segments());
}

}  // namespace

Set2Set::Set2Set(int64_t channels, int given, Generator& generator) : steps(given) {
  check(channels >= 1 && given >= 1, "set2set: {} channels and {} steps were given but it needs 1 or more of each", channels,
        given);
  lstm.weight_ih = uniform_fan_in(Shape{4 * channels, 2 * channels}, channels, generator);
  lstm.weight_hh = uniform_fan_in(Shape{4 * channels, channels}, channels, generator);
  lstm.bias_ih = uniform_fan_in(Shape{4 * channels}, channels, generator);
  lstm.bias_hh = uniform_fan_in(Shape{4 * channels}, channels, generator);
}

Tensor Set2Set::operator()(const Tensor& x, const SegmentPlan& nodes) const {
  check(nodes.defined(), "set2set: nodes is undefined");
  const int64_t channels = lstm.weight_hh.dim(1);
  check(x.ndim() == 2 && x.dim(0) == nodes.num_rows() && x.dim(1) == channels,
        "set2set: x has shape {} but needs to be [{}, {}]", x.shape(), nodes.num_rows(), channels);
  const Graph graph = membership(nodes);
  const int64_t graphs = nodes.num_segments();
  const LstmWeights weights{lstm.weight_ih, lstm.weight_hh, lstm.bias_ih, lstm.bias_hh};
  Tensor out = zeros(Shape{graphs, 2 * channels}, x.dtype());
  LstmState state;
  for (int step = 0; step < steps; ++step) {
    const LstmResult next = tessera::lstm(reshape(out, Shape{graphs, 1, 2 * channels}), weights, state);
    state = next.last;
    const Tensor q = reshape(next.out, Shape{graphs, channels});
    const Tensor scores = reshape(sddmm_dot(graph, q, x), Shape{nodes.num_rows(), 1});
    const Tensor attention = reshape(segment_softmax(scores, nodes), Shape{nodes.num_rows()});
    out = concat({q, spmm(graph, x, Reduce::sum, {.weight = attention})}, 1);
  }
  return out;
}

}  // namespace tessera
