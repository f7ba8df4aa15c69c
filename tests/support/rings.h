#pragma once

#include <functional>

#include "tessera/core/autograd.h"
#include "tessera/core/module.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/optim/adam.h"
#include "tessera/sparse/graph_batch.h"

/// A small task for models of whole graphs: rings, and rings with chords.
namespace tessera::test {

/// Graph g is a ring of 3 + g % 5 nodes, both directions; label g % 2 says whether each node also has an edge from the node
/// after the next. The third has one node and no edges, the last no nodes.
struct Rings {
  GraphBatch batch;
  Tensor x;       ///< (N, channels)
  Tensor atoms;   ///< i64 (N, 3) in [0, 5), [0, 3), [0, 2)
  Tensor bonds;   ///< i64 (E, 3) in [0, 5), [0, 6), [0, 2)
  Tensor labels;  ///< i32 (G)

  Rings(int64_t graphs, int64_t channels);
};

struct Trained {
  StateDict state;
  double first_loss = 0, last_loss = 0;
};

/// `epochs` steps of Adam on `logits()`, in training mode; the losses are those of evaluation, before and after.
template <class Model, class Logits>
Trained train_on(const Rings& data, Model& model, int epochs, const Logits& logits) {
  Trained out;
  Adam optimiser(parameters(model), {.lr = 0.01});
  const auto evaluated = [&] {
    const NoGrad off;
    eval(model);
    const double value = cross_entropy(logits(), data.labels).item();
    train(model);
    return value;
  };
  out.first_loss = evaluated();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimiser.clear_grad();
    backward(cross_entropy(logits(), data.labels));
    optimiser.step();
  }
  out.last_loss = evaluated();
  out.state = state_dict(model);
  return out;
}

/// Trains what `run(threads)` gives with 1, 2 and 3 threads: the loss has to fall, and every bit to agree.
void expect_same_for_all_threads(const std::function<Trained()>& run);

}  // namespace tessera::test
