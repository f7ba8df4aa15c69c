#pragma once

#include "tessera/core/random.h"
#include "tessera/core/tensor.h"

namespace tessera {

/// A learned row for each of `count` ids. ids i32 or i64 (N), out (N, channels). Gradient: each row's is the sum over the
/// places that name it. State and initial values are torch.nn.Embedding's: `weight` (count, channels), standard normal.
/// Errors: InvalidArgument for an id outside [0, count), naming the first and its position.
struct Embedding {
  Tensor weight;

  Embedding() = default;
  Embedding(int64_t count, int64_t channels, Generator& generator);

  Tensor operator()(const Tensor& ids) const;

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visitor) {
    visitor("weight", self.weight);
  }
};

}  // namespace tessera
