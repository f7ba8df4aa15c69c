#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/tensor.h"

/// Numbers of the naive references. A reference is written once, in the plainest way, on `Real`; the harness gets three
/// things out of it:
/// - the value, in long double, so that float64 kernels are judged by something better than themselves;
/// - the magnitude: the same formula with every term taken absolute (`sum|terms|`), which times `k * eps` bounds the
///   rounding error of any order of evaluation. Rules for functions carry the first-order error of their argument;
/// - gradients and their magnitudes, by a scalar reverse-mode tape: an algorithm that shares nothing with the library's.
/// At a kink the reference's own branch decides (`x > 0 ? x : Real(0)` has gradient 0 at 0), so tie rules are tested too.
namespace tessera::test {

class Real {
 public:
  Real() = default;
  Real(double constant) : value(constant), magnitude(constant < 0 ? -constant : constant) {}
  Real(long double v, double m, int32_t tape_node) : value(v), magnitude(m), node(tape_node) {}

  long double value = 0;
  double magnitude = 0;
  int32_t node = -1;  // on the tape; -1: a constant

  Real& operator+=(const Real& b);
  Real& operator-=(const Real& b);
  Real& operator*=(const Real& b);
  Real& operator/=(const Real& b);
};

Real operator+(const Real& a, const Real& b);
Real operator-(const Real& a, const Real& b);
Real operator*(const Real& a, const Real& b);
Real operator/(const Real& a, const Real& b);
Real operator-(const Real& a);
inline bool operator<(const Real& a, const Real& b) { return a.value < b.value; }
inline bool operator>(const Real& a, const Real& b) { return a.value > b.value; }
inline bool operator<=(const Real& a, const Real& b) { return a.value <= b.value; }
inline bool operator>=(const Real& a, const Real& b) { return a.value >= b.value; }
inline bool operator==(const Real& a, const Real& b) { return a.value == b.value; }
inline bool isnan(const Real& a) { return a.value != a.value; }

Real exp(const Real& x);
Real log(const Real& x);
Real sqrt(const Real& x);
Real tanh(const Real& x);
Real abs(const Real& x);

/// An array of Reals under a shape; integer tensors arrive as whole constants.
class Array {
 public:
  Array() : Array(Shape{}) {}
  /// Zeros.
  explicit Array(const Shape& s) : shape(s), values(size_t(s.numel())) {}

  Shape shape;
  std::vector<Real> values;

  int64_t dim(int i) const { return shape[i]; }
  int64_t numel() const { return int64_t(values.size()); }
  Real& operator[](int64_t i) { return values[size_t(i)]; }
  const Real& operator[](int64_t i) const { return values[size_t(i)]; }
  Real& operator()(int64_t i, int64_t j) { return values[size_t(i * shape[1] + j)]; }
  const Real& operator()(int64_t i, int64_t j) const { return values[size_t(i * shape[1] + j)]; }
  Real& operator()(int64_t i, int64_t j, int64_t k) { return values[size_t((i * shape[1] + j) * shape[2] + k)]; }
  const Real& operator()(int64_t i, int64_t j, int64_t k) const { return values[size_t((i * shape[1] + j) * shape[2] + k)]; }
  /// Element i as an index.
  int64_t id(int64_t i) const { return int64_t(values[size_t(i)].value); }
};

using Arrays = std::vector<Array>;

/// Records what is computed with Reals while it lives, on this thread; one at a time.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Makes every element of `array` a variable of the tape.
  void watch(Array& array);

  struct Gradient {
    std::vector<long double> value;
    std::vector<double> magnitude;  // sum over paths of |terms|
  };
  /// d(sum_i seed[i] * output[i]) / d(input), for each of the watched `inputs`.
  std::vector<Gradient> gradients(const Array& output, const std::vector<double>& seed,
                                  const std::vector<const Array*>& inputs) const;
};

/// The tensor's elements, exactly.
Array to_array(const Tensor& tensor);

}  // namespace tessera::test
