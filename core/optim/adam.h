#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/module.h"
#include "tessera/core/tensor.h"

namespace tessera {

/// Parameters that share a weight decay.
struct ParameterGroup {
  std::vector<Tensor> parameters;  ///< f32 or f64 leaves that require gradients
  double weight_decay = 0;
};

/// Adam (Kingma and Ba, 2015) with PyTorch's conventions: weight decay is added to the gradient, eps to the square root
/// after its bias correction.
///
///     m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
///
/// `decoupled` makes it AdamW (Loshchilov and Hutter, 2019): the gradient is left as it is, and w shrinks by lr * decay
/// before the update.
class Adam {
 public:
  using Group = ParameterGroup;
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    bool decoupled = false;
  };

  /// Errors: InvalidArgument for a parameter that needs no gradient or comes twice, or an option out of its range.
  Adam(std::vector<Group> groups, Options options);
  Adam(std::vector<Tensor> parameters, Options options) : Adam({Group{std::move(parameters)}}, options) {}

  /// One update from the gradients at hand; a parameter without one is left alone. All parameters in one parallel pass.
  void step();
  void clear_grad();

  int64_t steps() const { return steps_; }
  Options& options() { return options_; }

  /// All that a later run needs to go on with the same bits: "steps" i64 [], "lr" f64 [], and "m.0", "v.0", ... by the
  /// parameters' order. The tensors are the optimiser's own, not copies.
  StateDict state() const;
  /// Copies such a state in, or changes nothing: whatever is missing, unexpected, or of another shape or dtype is listed
  /// in one InvalidArgument.
  void load_state(const StateDict& source);

 private:
  struct Slot {
    Tensor parameter, m, v;
    double weight_decay;
  };
  std::vector<Slot> slots_;
  std::vector<int64_t> first_piece_;  // of each slot, and their count
  Options options_;
  int64_t steps_ = 0;
};

}  // namespace tessera
