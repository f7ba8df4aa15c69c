#pragma once

#include <string>
#include <vector>

#include "tessera/core/module.h"

namespace tessera::apps {

/// What a run showed after each epoch; NaN where nothing was measured.
struct History {
  std::vector<double> train_loss, train_score, valid_loss, valid_score;

  int64_t epochs() const { return int64_t(train_loss.size()); }
  void add(double loss, double train, double validation_loss, double validation);
  StateDict state() const;
  /// Errors: InvalidArgument when the lengths differ or one is missing.
  static History from(const StateDict& state);
};

/// f64 (n) of numbers and back. Errors: InvalidArgument when `state` has no such f64 tensor of one dimension.
Tensor to_tensor(const std::vector<double>& values);
std::vector<double> numbers_of(const StateDict& state, const std::string& name);

}  // namespace tessera::apps
