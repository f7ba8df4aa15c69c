#pragma once

#include "tessera/core/module.h"
#include "tessera/core/random.h"
#include "tessera/sparse/sparse_matrix.h"

namespace tessera {

struct LinearOptions {
  bool bias = true;
  bool glorot = false;  ///< initial weights by `glorot` in place of `uniform_fan_in`
};

/// x W^T + b. x (N, in) dense or sparse, out (N, out). State: `weight` (out, in), `bias` (out): torch.nn.Linear's and
/// torch_geometric.nn.dense.Linear's.
struct Linear {
  Tensor weight, bias;

  Linear() = default;
  Linear(int64_t in, int64_t out, Generator& generator, LinearOptions options = {});

  /// Errors: InvalidArgument when x is not (N, in).
  Tensor operator()(const Tensor& x) const;
  Tensor operator()(const SparseMatrix& x) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
    visitor("bias", self.bias);
  }
};

}  // namespace tessera
