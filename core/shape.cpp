#include "tessera/core/shape.h"

namespace tessera {

Shape::Shape(const int64_t* sizes, int count) : ndim_(count) {
  check(count <= kMaxDims, "shape: {} dimensions given but at most {} are supported", count, kMaxDims);
  for (int i = 0; i < count; ++i) {
    check(sizes[i] >= 0, "shape: dimension {} has size {} but needs a size of 0 or more", i, sizes[i]);
    sizes_[i] = sizes[i];
    check(!__builtin_mul_overflow(numel_, sizes[i], &numel_), "shape: the number of elements exceeds 2^63 - 1");
  }
}

Shape Shape::with(int i, int64_t size) const {
  int64_t sizes[kMaxDims];
  for (int d = 0; d < ndim_; ++d) sizes[d] = d == i ? size : sizes_[d];
  return Shape(sizes, ndim_);
}

int dim_of(const char* op, const Shape& shape, int dim) {
  const int i = dim < 0 ? dim + shape.ndim() : dim;
  check(i >= 0 && i < shape.ndim(), "{}: dimension {} does not exist in shape {}", op, dim, shape);
  return i;
}

Lines lines_of(const char* op, const Shape& shape, int dim) {
  const int at = dim_of(op, shape, dim);
  Lines lines{1, shape[at], 1};
  for (int i = 0; i < at; ++i) lines.outer *= shape[i];
  for (int i = at + 1; i < shape.ndim(); ++i) lines.inner *= shape[i];
  return lines;
}

std::string to_text(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.ndim(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

}  // namespace tessera
