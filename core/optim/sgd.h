#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/optim/adam.h"

namespace tessera {

/// Stochastic gradient descent with PyTorch's conventions: weight decay is added to the gradient.
///
///     b = momentum b + g;  w -= lr b, or with Nesterov's rule  w -= lr (g + momentum b)
class Sgd {
 public:
  using Group = ParameterGroup;
  struct Options {
    double lr = 1e-2;
    double momentum = 0;
    bool nesterov = false;
  };

  /// Errors: InvalidArgument for a parameter that needs no gradient or comes twice, or an option out of its range.
  Sgd(std::vector<Group> groups, Options options);
  Sgd(std::vector<Tensor> parameters, Options options) : Sgd({Group{std::move(parameters)}}, options) {}

  /// One update from the gradients at hand; a parameter without one is left alone. All parameters in one parallel pass.
  void step();
  void clear_grad();

  int64_t steps() const { return steps_; }
  Options& options() { return options_; }

  /// As `Adam::state`: "steps", "lr", and with momentum "b.0", "b.1", ...
  StateDict state() const;
  void load_state(const StateDict& source);

 private:
  struct Slot {
    Tensor parameter, b;
    double weight_decay;
  };
  std::vector<Slot> slots_;
  std::vector<int64_t> first_piece_;
  Options options_;
  bool has_momentum_;
  int64_t steps_ = 0;
};

}  // namespace tessera
