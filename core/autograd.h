#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <utility>

#include "tessera/core/tensor.h"

/// Eager reverse-mode differentiation. An operation computes its output, then calls `record` with a closure that turns
/// the output's gradient into the inputs' gradients; `backward` walks what was recorded once, newest first, without
/// recursion, and frees each closure as it has run.
///
///     Tensor square(const Tensor& x) {
///       Tensor out = mul(x.detach(), x.detach());
///       record("square", out, {x}, [x = Saved(x)](const Tensor& grad, Gradients& into) {
///         if (into.wants(0)) into.add(0, mul(scale(x.get(), 2), grad));
///       });
///       return out;
///     }
namespace tessera {

/// A tensor kept for the backward pass: its array, without its history (so an op may save its own output), and the
/// version of the array at that time.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& tensor) : tensor_(tensor.defined() ? tensor.detach() : Tensor()), version_(tensor_.defined() ? tensor_.version() : 0) {}

  /// Errors: InvalidArgument when the array was changed since it was saved.
  const Tensor& get() const;
  bool defined() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
  uint64_t version_ = 0;
};

/// Where a backward closure puts the gradients of its op's inputs.
class Gradients {
 public:
  /// Whether input `i` needs a gradient: skip the work otherwise.
  bool wants(int i) const { return wanted_[i]; }
  /// Adds to input i's gradient; InternalError for another shape or dtype. std::move your own: a leaf copies a shared one.
  void add(int i, Tensor grad);

  static constexpr int kMaxInputs = 8;

 private:
  friend struct Walk;
  struct Node* node_ = nullptr;
  struct Walk* walk_ = nullptr;
  bool wanted_[kMaxInputs] = {};
};

using Backward = std::function<void(const Tensor& grad, Gradients& into)>;

/// Whether an op of these inputs is to be differentiated: recording is on and one of them requires a gradient.
/// Errors: InvalidArgument when another was made from a gradient (a second derivative is not supported).
bool needs_record(const char* name, Tensor& out, std::initializer_list<Tensor> inputs);
void attach(const char* name, Tensor& out, std::initializer_list<Tensor> inputs, Backward closure);

/// Remembers how `out` was made from `inputs` (undefined ones allowed, at most 8). `name` is a literal.
template <class F>
void record(const char* name, Tensor& out, std::initializer_list<Tensor> inputs, F&& closure) {
  if (needs_record(name, out, inputs)) attach(name, out, inputs, Backward(std::forward<F>(closure)));
}

/// Switches recording off in its scope, on this thread.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

struct BackwardOptions {
  bool create_graph = false;  ///< a second derivative: always an Unsupported error
};

/// Adds d(loss)/d(leaf) to `grad()` of every leaf that requires one, and frees the recorded graph.
/// `seed` is the gradient of `loss`, of its shape; without one `loss` must have one element and gets 1.
/// Errors: InvalidArgument for a loss without history, a second pass through a freed graph, a saved tensor that was
/// changed; Unsupported for create_graph.
void backward(const Tensor& loss, const Tensor& seed = {}, BackwardOptions options = {});

}  // namespace tessera
