#include "tessera/layers/models/deeper_gcn.h"

#include "tessera/core/ops/dropout.h"
#include "tessera/scatter/segment_reduce.h"

namespace tessera {

DeeperGcn::DeeperGcn(const DeeperGcnOptions& given, Generator& generator) : options(given) {
  check(given.in >= 0 && given.hidden >= 1 && given.out >= 1 && given.edge_dim >= 0,
        "deeper_gcn: hidden {} and out {} need to be 1 or more, in {} and edge_dim {} 0 or more", given.hidden, given.out,
        given.in, given.edge_dim);
  check(given.layers >= 1, "deeper_gcn: {} layers asked but needs 1 or more", given.layers);
  check(given.dropout >= 0 && given.dropout <= 1, "deeper_gcn: dropout is {} but needs to be in [0, 1]", given.dropout);
  if (given.readout)
    check(given.readout == Reduce::sum || given.readout == Reduce::mean || given.readout == Reduce::max,
          "deeper_gcn: readout {} is not one of sum, mean and max", name(*given.readout));
  if (given.in > 0) node_encoder = Linear(given.in, given.hidden, generator);
  if (given.edge_dim > 0) edge_encoder = Linear(given.edge_dim, given.hidden, generator);
  for (int i = 0; i < given.layers; ++i)
    layers.emplace_back(GenConv(given.hidden, given.hidden, generator, given.conv), NodeNorm(given.norm, given.hidden),
                        DeepGcnLayerOptions{.dropout = given.dropout});
  lin = Linear(given.hidden, given.out, generator);
}

Tensor DeeperGcn::operator()(const Tensor& x, const Graph& graph, Generator& generator, const Tensor& edge_attr,
                             const SegmentPlan& nodes) const {
  check(nodes.defined() || !options.readout, "deeper_gcn: a model with a readout needs the graph of each node");
  Tensor edge = edge_attr;
  if (edge_encoder.weight.defined()) {
    check(edge.defined(), "deeper_gcn: edge_attr was not given but the model was made with edge_dim");
    edge = edge_encoder(edge);
  }
  Tensor h = node_encoder.weight.defined() ? node_encoder(x) : x;
  h = layers[0].conv(h, graph, edge);
  for (size_t i = 1; i < layers.size(); ++i) h = layers[i](h, graph, generator, edge);
  h = layers[0].activated(h);
  if (training && options.dropout > 0) h = dropout(h, options.dropout, generator);
  if (options.readout) h = segment_reduce(h, nodes, *options.readout);
  return lin(h);
}

}  // namespace tessera
