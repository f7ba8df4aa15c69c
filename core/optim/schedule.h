#pragma once

#include <cstdint>

/// Learning rates over time. Plain numbers: what `at` gives depends on its argument alone, so there is nothing to save but
/// the epoch; Plateau alone has state, its members. `optimiser.options().lr = schedule.at(epoch)`.
namespace tessera {

/// lr * gamma^(epoch / every), in whole steps.
struct StepSchedule {
  double lr;
  int64_t every;
  double gamma = 0.1;
  /// Errors: InvalidArgument for every < 1.
  double at(int64_t epoch) const;
};

/// From lr down to `least` along half a cosine over `total` epochs (Loshchilov and Hutter, 2017), `least` afterwards.
struct CosineSchedule {
  double lr;
  int64_t total;
  double least = 0;
  /// Errors: InvalidArgument for total < 1.
  double at(int64_t epoch) const;
};

/// A factor for any other schedule that rises in a straight line from `start` at step 0 to 1 at step `steps` and stays.
struct WarmUp {
  int64_t steps;
  double start = 0.1;
  double at(int64_t step) const;
};

/// lr times `factor` whenever more than `patience` epochs in a row brought no improvement, that is a metric beyond the best
/// so far by the relative `threshold`; at least `least`. After a cut, `cooldown` epochs do not count. NaN is no improvement.
struct Plateau {
  double lr;
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  int64_t cooldown = 0;
  double least = 0;
  bool larger_is_better = false;

  // State.
  bool has_best = false;
  double best = 0;
  int64_t bad_epochs = 0;
  int64_t cooling = 0;

  /// Takes an epoch's metric and gives the rate for the next.
  double update(double metric);
};

}  // namespace tessera
