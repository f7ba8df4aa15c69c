#pragma once

#include <memory>

#include "tessera/core/tensor.h"

/// What is behind a Tensor handle. For core/tensor.cpp, core/autograd.cpp and clone only.
namespace tessera {

struct Node;

struct TensorState {
  std::shared_ptr<Storage> storage;
  Shape shape;
  int64_t offset = 0;  // bytes
  DType dtype = DType::f32;
  bool requires_grad = false;
  bool from_gradient = false;  // a gradient, a view of one, or computed from one; detach() clears it
  std::shared_ptr<Node> node;  // how it was made; empty for a leaf
  Tensor grad;

  static TensorState* of(const Tensor& tensor) { return tensor.state_.get(); }
  static const std::shared_ptr<TensorState>& shared(const Tensor& tensor) { return tensor.state_; }
  static Tensor handle(std::shared_ptr<TensorState> state) { return Tensor(std::move(state)); }
};

}  // namespace tessera
