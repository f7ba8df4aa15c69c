#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"
#include "tessera/scatter/segment_plan.h"

namespace tessera {

/// Reads a graph's nodes out in an order that does not matter (Vinyals, Bengio and Kudlur, arXiv 1511.06391). From zeros,
/// `steps` times, for each graph:
///
///     q = lstm(q | r);  a = softmax over its nodes i of <x[i], q>;  r = sum over its nodes of a[i] x[i]
///
/// x (N, C); nodes: the graph of each node (`GraphBatch::nodes`); out (G, 2 C): q | r of the last step. A graph without
/// nodes has r = 0 in every step. Gradients: x and every parameter. No N x C buffer but x. State and initial values are
/// torch_geometric.nn.Set2Set's, which are torch.nn.LSTM(2 C, C)'s: `lstm.weight_ih_l0` (4 C, 2 C), `lstm.weight_hh_l0` (4
/// C, C), `lstm.bias_ih_l0`, `lstm.bias_hh_l0` (4 C). Errors: InvalidArgument for shapes; channels or steps below 1.
struct Set2Set {
  struct Lstm {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
    template <class Self, class Visitor>
    static void visit(Self& self, Visitor&& visitor) {
      visitor("weight_ih_l0", self.weight_ih);
      visitor("weight_hh_l0", self.weight_hh);
      visitor("bias_ih_l0", self.bias_ih);
      visitor("bias_hh_l0", self.bias_hh);
    }
  };
  Lstm lstm;
  int steps = 0;

  Set2Set() = default;
  Set2Set(int64_t channels, int steps, Generator& generator);

  Tensor operator()(const Tensor& x, const SegmentPlan& nodes) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("lstm", self.lstm);
  }
};

}  // namespace tessera
