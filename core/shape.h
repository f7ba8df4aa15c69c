#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "tessera/core/error.h"

namespace tessera {

/// Sizes of a row-major tensor's dimensions, outermost first; no dimension is a scalar. All sizes are int64.
class Shape {
 public:
  static constexpr int kMaxDims = 6;

  Shape() = default;
  /// Errors: more than kMaxDims sizes, a negative size, a product beyond 2^63 - 1.
  Shape(std::initializer_list<int64_t> sizes) : Shape(sizes.begin(), int(sizes.size())) {}
  Shape(const int64_t* sizes, int count);

  int ndim() const { return ndim_; }
  /// Size of dimension `i`; a negative `i` counts from the last. Not checked: -ndim() <= i < ndim() is the caller's part.
  int64_t operator[](int i) const { return sizes_[i < 0 ? i + ndim_ : i]; }
  int64_t numel() const { return numel_; }
  bool operator==(const Shape& other) const = default;

  /// The same shape with dimension `i` (not negative) of size `size`.
  Shape with(int i, int64_t size) const;

 private:
  std::array<int64_t, kMaxDims> sizes_{};
  int64_t numel_ = 1;
  int ndim_ = 0;
};

/// Dimension `dim` of `shape`, counted from the last when negative, as an index from 0.
/// Errors: InvalidArgument "<op>: dimension 2 does not exist in shape [4, 3]".
int dim_of(const char* op, const Shape& shape, int dim);

/// A row-major array seen along one dimension: element i of line (o, n) stands at (o * length + i) * inner + n.
struct Lines {
  int64_t outer, length, inner;
};
/// Errors: as `dim_of`.
Lines lines_of(const char* op, const Shape& shape, int dim);

/// "[2, 3]".
std::string to_text(const Shape& shape);

}  // namespace tessera
