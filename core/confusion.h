#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/tensor.h"

namespace tessera {

/// How often each class is predicted as each: `count(label, predicted)`.
struct Confusion {
  int64_t classes = 0;
  std::vector<int64_t> counts;  ///< classes x classes, a row per label

  int64_t count(int64_t label, int64_t predicted) const { return counts[size_t(label * classes + predicted)]; }
  int64_t labelled(int64_t label) const;
  int64_t predicted(int64_t as) const;
  int64_t total() const;
  /// Shares in [0, 1]; 0 where nothing is there to divide by.
  double precision(int64_t c) const;
  double recall(int64_t c) const;
  double f1(int64_t c) const;
};

/// The chosen rows of scores (N, C), argmax, ties to the lowest class. labels i32 (N); rows i32 (M), undefined: all.
/// Errors: InvalidArgument for shapes, a row or a label out of range, naming the first.
Confusion confusion(const Tensor& scores, const Tensor& labels, const Tensor& rows = {});

}  // namespace tessera
