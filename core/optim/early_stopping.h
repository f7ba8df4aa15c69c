#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera {

/// Watches one number after every epoch. `update` is true when it is the best so far, which is when the weights are to be
/// kept; `stopped` after `patience` epochs in a row without a better one. NaN is never better, an equal number neither. The
/// members are the whole state, for checkpoints.
struct EarlyStopping {
  int64_t patience = 0;  ///< 0: never stops
  bool larger_is_better = false;

  double best = std::numeric_limits<double>::quiet_NaN();
  int64_t best_epoch = -1;  ///< -1 before the first
  int64_t waited = 0;

  bool update(int64_t epoch, double value) {
    const bool better = !std::isnan(value) && (best_epoch < 0 || (larger_is_better ? value > best : value < best));
    if (!better) {
      ++waited;
      return false;
    }
    best = value;
    best_epoch = epoch;
    waited = 0;
    return true;
  }
  bool stopped() const { return patience > 0 && waited >= patience; }
};

}  // namespace tessera
