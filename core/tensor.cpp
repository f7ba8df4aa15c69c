#include "tessera/core/tensor.h"

#include <cstring>

#include "tessera/core/tensor_state.h"

namespace tessera {
namespace {

std::shared_ptr<TensorState> make_state(std::shared_ptr<Storage> storage, const Shape& shape, DType dtype, int64_t offset) {
  auto state = std::make_shared<TensorState>();
  state->storage = std::move(storage);
  state->shape = shape;
  state->dtype = dtype;
  state->offset = offset;
  return state;
}

size_t bytes_of(const Shape& shape, DType dtype) {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(shape.numel(), int64_t(size_of(dtype)), &bytes),
        "tensor: shape {} of {} exceeds 2^63 - 1 bytes", shape, dtype);
  return size_t(bytes);
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  return Tensor(make_state(std::make_shared<Storage>(bytes_of(shape, dtype), device), shape, dtype, 0));
}

Tensor Tensor::copy_of(const void* values, int64_t count, const Shape& shape, DType dtype) {
  check(count == shape.numel(), "tensor: {} values given but shape {} needs {}", count, shape, shape.numel());
  Tensor out = empty(shape, dtype);
  if (count > 0) std::memcpy(out.mutable_raw(), values, bytes_of(shape, dtype));
  return out;
}

Tensor Tensor::borrow(void* data, const Shape& shape, DType dtype, std::shared_ptr<const void> owner) {
  check(owner != nullptr, "tensor: borrowed memory needs an owner; use Tensor::from for a copy");
  return Tensor(make_state(std::make_shared<Storage>(data, bytes_of(shape, dtype), std::move(owner)), shape, dtype, 0));
}

namespace {
TensorState& state_of(const Tensor& tensor) {
  TensorState* state = TensorState::of(tensor);
  check(state != nullptr, "tensor: an undefined tensor was used");
  return *state;
}
}  // namespace

const Shape& Tensor::shape() const { return state_of(*this).shape; }
DType Tensor::dtype() const { return state_of(*this).dtype; }
Device Tensor::device() const { return state_of(*this).storage->device(); }

const void* Tensor::raw() const {
  const TensorState& state = state_of(*this);
  return static_cast<const char*>(state.storage->data()) + state.offset;
}

void* Tensor::mutable_raw() {
  changed();
  return const_cast<void*>(raw());
}

const void* Tensor::typed(DType dtype) const {
  const TensorState& state = state_of(*this);
  check(dtype == state.dtype, "tensor: elements asked as {} but the dtype is {}", dtype, state.dtype);
  return static_cast<const char*>(state.storage->data()) + state.offset;
}

void Tensor::changed() { state_of(*this).storage->changed(); }
uint64_t Tensor::version() const { return state_of(*this).storage->version(); }

double Tensor::item() const {
  check(numel() == 1, "item: the tensor has shape {} but needs one element", shape());
  return with_any(dtype(), [&]<class T>() {
    const T value = *data<T>();
    if constexpr (sizeof(T) == 2)
      return double(float(value));
    else
      return double(value);
  });
}

Tensor Tensor::view_rows(int64_t begin, int64_t end) const {
  const TensorState& state = state_of(*this);
  check(ndim() >= 1, "view_rows: a scalar has no rows");
  check(0 <= begin && begin <= end && end <= dim(0), "view_rows: rows [{}, {}) are not within [0, {})", begin, end, dim(0));
  const int64_t row_bytes = dim(0) == 0 ? 0 : numel() / dim(0) * int64_t(size_of(state.dtype));
  Tensor out(make_state(state.storage, state.shape.with(0, end - begin), state.dtype, state.offset + begin * row_bytes));
  out.state_->from_gradient = state.from_gradient;
  return out;
}

Tensor Tensor::view_as(const Shape& shape) const {
  const TensorState& state = state_of(*this);
  check(shape.numel() == state.shape.numel(), "view_as: shape {} has {} elements but the tensor of shape {} has {}", shape,
        shape.numel(), state.shape, state.shape.numel());
  Tensor out(make_state(state.storage, shape, state.dtype, state.offset));
  out.state_->from_gradient = state.from_gradient;
  return out;
}

bool Tensor::requires_grad() const { return state_of(*this).requires_grad; }

Tensor& Tensor::set_requires_grad(bool value) {
  TensorState& state = state_of(*this);
  check(!value || is_floating(state.dtype), "set_requires_grad: dtype {} has no gradients", state.dtype);
  check(state.node == nullptr, "set_requires_grad: the tensor was computed from others; detach() it first");
  state.requires_grad = value;
  return *this;
}

Tensor Tensor::grad() const { return state_of(*this).grad; }
void Tensor::clear_grad() { state_of(*this).grad = Tensor(); }

Tensor Tensor::detach() const {
  const TensorState& state = state_of(*this);
  return Tensor(make_state(state.storage, state.shape, state.dtype, state.offset));
}

}  // namespace tessera
