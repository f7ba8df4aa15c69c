#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/module.h"

namespace tessera {

/// Adam (Kingma and Ba, 2015) with PyTorch's conventions: weight decay is added to the gradient, eps to the square root
/// after its bias correction.
///
///     m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
class Adam {
 public:
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
  };
  /// Parameters that share a weight decay.
  struct Group {
    std::vector<Tensor> parameters;  ///< f32 or f64 leaves that require gradients
    double weight_decay = 0;
  };

  /// Errors: InvalidArgument for a parameter that needs no gradient, or an option out of its range.
  Adam(std::vector<Group> groups, Options options);
  Adam(std::vector<Tensor> parameters, Options options) : Adam({Group{std::move(parameters)}}, options) {}

  /// One update from the gradients at hand; a parameter without one is left alone. All parameters in one parallel pass.
  void step();
  void clear_grad();

  /// What a resumed run needs: "steps", and "m.<i>", "v.<i>" of parameter i; the moments are the optimiser's own, not
  /// copies.
  StateDict state() const;
  /// Replaces the state, or changes nothing. Errors: InvalidArgument, as `copy_state`.
  void load_state(const StateDict& state);

  int64_t steps() const { return steps_; }
  Options& options() { return options_; }

 private:
  struct Slot {
    Tensor parameter, m, v;
    double weight_decay;
  };
  std::vector<Slot> slots_;
  Options options_;
  int64_t steps_ = 0;
};

}  // namespace tessera
