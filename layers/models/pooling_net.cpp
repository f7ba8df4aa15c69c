#include "tessera/layers/models/pooling_net.h"

#include <type_traits>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/dropout.h"
#include "tessera/layers/pool/readout.h"

namespace tessera {
namespace {

template <class Pool>
Pool make_pool(const PoolingNetOptions& options, Generator& generator) {
  const PoolOptions pooling{.ratio = options.ratio, .min_score = options.min_score};
  if constexpr (std::is_same_v<Pool, TopKPooling>)
    return TopKPooling(options.hidden, generator, pooling);
  else
    return Pool(GraphConv(options.hidden, 1, generator), generator, pooling);
}

void check_sizes(const char* who, const SagPaperNetOptions& given) {
  check(given.in >= 1 && given.hidden >= 2 && given.out >= 1,
        "{}: sizes in {}, hidden {} and out {} need to be 1 or more, hidden 2 or more", who, given.in, given.hidden,
        given.out);
}

SagPooling<GcnConv> make_sag(int64_t channels, double ratio, Generator& generator) {
  return SagPooling<GcnConv>(GcnConv(channels, 1, generator), generator, {.ratio = ratio});
}

Tensor max_and_mean(const Tensor& x, const SegmentPlan& nodes) {
  return concat({global_max_pool(x, nodes), global_mean_pool(x, nodes)}, 1);
}

/// The three linear layers that both nets of the paper end with.
template <class Net>
Tensor classify(const Net& net, const Tensor& readout, Generator& generator) {
  Tensor h = relu(net.lin1(readout));
  if (net.training && net.options.dropout > 0) h = dropout(h, net.options.dropout, generator);
  return net.lin3(relu(net.lin2(h)));
}

}  // namespace

template <class Pool>
PoolingNet<Pool>::PoolingNet(const PoolingNetOptions& given, Generator& generator) : options(given) {
  check(given.in >= 1 && given.hidden >= 1 && given.out >= 1,
        "pooling_net: sizes in {}, hidden {} and out {} need to be 1 or more", given.in, given.hidden, given.out);
  check(given.layers >= 1, "pooling_net: {} layers asked but needs 1 or more", given.layers);
  const GraphConvOptions mean{.aggregate = Reduce::mean};
  conv1 = GraphConv(given.in, given.hidden, generator, mean);
  for (int i = 1; i < given.layers; ++i) convs.emplace_back(given.hidden, given.hidden, generator, mean);
  for (int i = 0; i < given.layers / 2; ++i) pools.push_back(make_pool<Pool>(given, generator));
  lin1 = Linear(given.layers * given.hidden, given.hidden, generator);
  lin2 = Linear(given.hidden, given.out, generator);
}

template <class Pool>
Tensor PoolingNet<Pool>::operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes,
                                    Generator& generator) const {
  Pooled at{.x = relu(conv1(x, graph)), .graph = graph, .nodes = nodes};
  std::vector<Tensor> readouts = {global_mean_pool(at.x, at.nodes)};
  for (size_t i = 0; i < convs.size(); ++i) {
    at.x = relu(convs[i](at.x, at.graph));
    readouts.push_back(global_mean_pool(at.x, at.nodes));
    if (i % 2 == 0 && i + 1 < convs.size()) at = pools[i / 2](at.x, at.graph, at.nodes);
  }
  Tensor h = relu(lin1(jump(readouts)));
  if (training && options.dropout > 0) h = dropout(h, options.dropout, generator);
  h = lin2(h);
  return options.out_activation != nullptr ? options.out_activation(h) : h;
}

template struct PoolingNet<SagPooling<GraphConv>>;
template struct PoolingNet<TopKPooling>;

SagPoolHierarchicalNet::SagPoolHierarchicalNet(const SagPaperNetOptions& given, Generator& generator) : options(given) {
  check_sizes("sag_pool_hierarchical_net", given);
  conv1 = GcnConv(given.in, given.hidden, generator);
  pool1 = make_sag(given.hidden, given.ratio, generator);
  conv2 = GcnConv(given.hidden, given.hidden, generator);
  pool2 = make_sag(given.hidden, given.ratio, generator);
  conv3 = GcnConv(given.hidden, given.hidden, generator);
  pool3 = make_sag(given.hidden, given.ratio, generator);
  lin1 = Linear(2 * given.hidden, given.hidden, generator);
  lin2 = Linear(given.hidden, given.hidden / 2, generator);
  lin3 = Linear(given.hidden / 2, given.out, generator);
}

Tensor SagPoolHierarchicalNet::operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes,
                                          Generator& generator) const {
  const Pooled one = pool1(relu(conv1(x, graph)), graph, nodes);
  const Pooled two = pool2(relu(conv2(one.x, one.graph)), one.graph, one.nodes);
  const Pooled three = pool3(relu(conv3(two.x, two.graph)), two.graph, two.nodes);
  const Tensor readout =
      add(add(max_and_mean(one.x, one.nodes), max_and_mean(two.x, two.nodes)), max_and_mean(three.x, three.nodes));
  return classify(*this, readout, generator);
}

SagPoolGlobalNet::SagPoolGlobalNet(const SagPaperNetOptions& given, Generator& generator) : options(given) {
  check_sizes("sag_pool_global_net", given);
  conv1 = GcnConv(given.in, given.hidden, generator);
  conv2 = GcnConv(given.hidden, given.hidden, generator);
  conv3 = GcnConv(given.hidden, given.hidden, generator);
  pool = make_sag(3 * given.hidden, given.ratio, generator);
  lin1 = Linear(6 * given.hidden, given.hidden, generator);
  lin2 = Linear(given.hidden, given.hidden / 2, generator);
  lin3 = Linear(given.hidden / 2, given.out, generator);
}

Tensor SagPoolGlobalNet::operator()(const Tensor& x, const Graph& graph, const SegmentPlan& nodes,
                                    Generator& generator) const {
  const Tensor h1 = relu(conv1(x, graph)), h2 = relu(conv2(h1, graph)), h3 = relu(conv3(h2, graph));
  const Pooled pooled = pool(concat({h1, h2, h3}, 1), graph, nodes);
  return classify(*this, max_and_mean(pooled.x, pooled.nodes), generator);
}

}  // namespace tessera
