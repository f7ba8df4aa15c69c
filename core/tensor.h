#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tessera/core/device.h"
#include "tessera/core/dtype.h"
#include "tessera/core/shape.h"
#include "tessera/core/storage.h"

namespace tessera {

struct TensorState;  // core/autograd.cpp's view of a tensor

/// A handle to a row-major, contiguous n-dimensional array; copies share the array. Gradient state lives inside.
/// Elements are read with `data<T>()` and opened for writing with `mutable_data<T>()`, which counts as a change:
/// a backward pass that saved the array from before the change then refuses to run.
class Tensor {
 public:
  /// Undefined: no array at all.
  Tensor() = default;

  /// Uninitialised elements. Errors: Unsupported device, std::bad_alloc.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);

  /// A copy of `values`. Errors: InvalidArgument when their count is not shape.numel().
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape) {
    return copy_of(values.data(), int64_t(values.size()), shape, dtype_of<T>);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }

  /// The caller's memory without a copy, kept alive by `owner`. Errors: InvalidArgument without an owner.
  static Tensor borrow(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner);

  bool defined() const { return state_ != nullptr; }
  const Shape& shape() const;
  int ndim() const { return shape().ndim(); }
  /// Size of dimension `i`; negative counts from the last.
  int64_t dim(int i) const { return shape()[i]; }
  int64_t numel() const { return shape().numel(); }
  DType dtype() const;
  Device device() const;

  /// Errors: InvalidArgument when T is not the dtype.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(typed(dtype_of<T>));
  }
  template <class T>
  T* mutable_data() {
    const void* elements = typed(dtype_of<T>);
    changed();
    return static_cast<T*>(const_cast<void*>(elements));
  }
  const void* raw() const;
  void* mutable_raw();

  template <class T>
  std::span<const T> span() const {
    return {data<T>(), size_t(numel())};
  }
  template <class T>
  std::vector<T> to_vector() const {
    return std::vector<T>(data<T>(), data<T>() + numel());
  }

  /// The only element, as a double. Errors: InvalidArgument unless numel() is 1.
  double item() const;

  /// Rows [begin, end) of dimension 0 as a view of the same array, without gradient state.
  Tensor view_rows(int64_t begin, int64_t end) const;
  /// The same array under another shape of equal numel, without gradient state.
  Tensor view_as(const Shape& shape) const;

  /// Whether operations on it are recorded.
  bool requires_grad() const;
  /// Marks a leaf for gradients and returns it. Errors: InvalidArgument for an integer dtype or a computed tensor.
  Tensor& set_requires_grad(bool value = true);
  /// Gradient left by `backward`; undefined before. Flagged: an operation that would differentiate through it is an error.
  Tensor grad() const;
  void clear_grad();
  /// The same array without gradient state.
  Tensor detach() const;

  /// Count of changes to the array, shared by views.
  uint64_t version() const;
  /// Whether both are handles of one tensor.
  bool is(const Tensor& other) const { return state_ == other.state_; }

 private:
  friend struct TensorState;
  explicit Tensor(std::shared_ptr<TensorState> state) : state_(std::move(state)) {}
  static Tensor copy_of(const void* values, int64_t count, const Shape& shape, DType dtype);
  const void* typed(DType dtype) const;
  void changed();

  std::shared_ptr<TensorState> state_;
};

}  // namespace tessera
