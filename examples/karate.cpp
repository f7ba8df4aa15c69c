// Trains a graph convolutional network on Zachary's karate club, with one labelled member a community.

#include <cstdio>

#include "tessera/core/autograd.h"
#include "tessera/core/metrics.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/optim/adam.h"
#include "tessera/datasets/graph/karate.h"
#include "tessera/layers/models/gcn.h"

using namespace tessera;

int main() {
  const NodeDataset data = karate_club();
  const Graph graph = Graph::from_coo(data.src, data.dst, data.num_nodes, data.num_nodes);
  const SparseMatrix x{Graph::from_csr(data.feature_rowptr, data.feature_col, data.num_features), data.feature_values};

  Generator random(0);
  Gcn model({.in = data.num_features, .hidden = 16, .out = data.num_classes}, random);
  Adam optimiser(parameters(model), {.lr = 0.01});
  for (int epoch = 0; epoch < 200; ++epoch) {
    optimiser.clear_grad();
    backward(cross_entropy(model(x, graph, random), data.labels, data.splits[0].train));
    optimiser.step();
  }

  eval(model);
  const NoGrad off;
  std::printf("test accuracy %.2f\n", accuracy(model(x, graph, random), data.labels, data.splits[0].test));
}
