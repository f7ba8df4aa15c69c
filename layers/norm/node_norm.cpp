#include "tessera/layers/norm/node_norm.h"

namespace tessera {

NodeNorm::NodeNorm(Kind given, int64_t channels) : kind(given) {
  switch (kind) {
    case Kind::batch: batch = BatchNorm(channels); break;
    case Kind::layer: layer = LayerNorm(channels); break;
    case Kind::layer_node: layer = LayerNorm(channels, {.mode = LayerNormOptions::Mode::node}); break;
    case Kind::graph: graph = GraphNorm(channels); break;
    case Kind::none:
    case Kind::instance:
    case Kind::pair: break;
  }
}

Tensor NodeNorm::operator()(const Tensor& x, const SegmentPlan& nodes) const {
  switch (kind) {
    case Kind::batch: return batch(x);
    case Kind::layer:
    case Kind::layer_node: return layer(x, nodes);
    case Kind::graph: return graph(x, nodes);
    case Kind::instance: return InstanceNorm()(x, nodes);
    case Kind::pair: return pair_norm(x, nodes);
    case Kind::none: break;
  }
  return x;
}

}  // namespace tessera
