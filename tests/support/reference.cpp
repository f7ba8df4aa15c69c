#include "tessera/tests/support/reference.h"

#include <cmath>
#include <stdexcept>

namespace tessera::test {
namespace {

/// d(node)/d(parent) and its magnitude, for at most two parents.
struct Step {
  int32_t parent[2];
  double magnitude[2];
  long double slope[2];
};

thread_local std::vector<Step>* steps = nullptr;

/// Beyond this a case is too large to be referenced: it would take gigabytes.
constexpr size_t kMaxSteps = size_t{20} << 20;

int32_t push(const Step& step) {
  if (steps->size() >= kMaxSteps) throw std::length_error("reference: the case needs more than 20M steps, make it smaller");
  steps->push_back(step);
  return int32_t(steps->size() - 1);
}

Real made(long double value, double magnitude, const Real& a, long double da, double ma) {
  const bool taped = steps != nullptr && a.node >= 0;
  return {value, magnitude, taped ? push({{a.node, -1}, {ma, 0}, {da, 0}}) : -1};
}

Real made(long double value, double magnitude, const Real& a, long double da, double ma, const Real& b, long double db,
          double mb) {
  const bool taped = steps != nullptr && (a.node >= 0 || b.node >= 0);
  return {value, magnitude, taped ? push({{a.node, b.node}, {ma, mb}, {da, db}}) : -1};
}

double positive(long double x) { return double(x < 0 ? -x : x); }

}  // namespace

Real operator+(const Real& a, const Real& b) { return made(a.value + b.value, a.magnitude + b.magnitude, a, 1, 1, b, 1, 1); }

Real operator-(const Real& a, const Real& b) {
  return made(a.value - b.value, a.magnitude + b.magnitude, a, 1, 1, b, -1, 1);
}

Real operator*(const Real& a, const Real& b) {
  return made(a.value * b.value, a.magnitude * b.magnitude, a, b.value, b.magnitude, b, a.value, a.magnitude);
}

// |d(a / b)| <= |da| / |b| + |a| |db| / b^2, and |db| may be as large as b's magnitude times eps.
Real operator/(const Real& a, const Real& b) {
  const long double value = a.value / b.value;
  const double inverse = b.magnitude / positive(b.value * b.value), magnitude = a.magnitude * inverse;
  return made(value, magnitude, a, 1 / b.value, inverse, b, -value / b.value, magnitude * inverse);
}

Real operator-(const Real& a) { return made(-a.value, a.magnitude, a, -1, 1); }

Real& Real::operator+=(const Real& b) { return *this = *this + b; }
Real& Real::operator-=(const Real& b) { return *this = *this - b; }
Real& Real::operator*=(const Real& b) { return *this = *this * b; }
Real& Real::operator/=(const Real& b) { return *this = *this / b; }

// An error d of the argument makes a relative error d of the result.
Real exp(const Real& x) {
  const long double value = std::exp(x.value);
  const double magnitude = double(value) * (1 + x.magnitude);
  return made(value, magnitude, x, value, magnitude);
}

Real log(const Real& x) {
  const long double value = std::log(x.value);
  const double relative = x.magnitude / positive(x.value);
  return made(value, positive(value) + relative, x, 1 / x.value, relative / positive(x.value));
}

Real sqrt(const Real& x) {
  const long double value = std::sqrt(x.value);
  const double relative = x.value == 0 ? 1 : x.magnitude / double(x.value);
  return made(value, double(value) * relative, x, 0.5L / value, 0.5 / double(value) * relative);
}

Real tanh(const Real& x) {
  const long double value = std::tanh(x.value), slope = 1 - value * value;
  // The slope is a difference: its rounding error is of the size of its terms, not of its own.
  return made(value, positive(value) + double(slope) * x.magnitude, x, slope, double(1 + value * value));
}

Real abs(const Real& x) { return x.value < 0 ? -x : x; }

Tape::Tape() { steps = new std::vector<Step>; }

Tape::~Tape() {
  delete steps;
  steps = nullptr;
}

void Tape::watch(Array& array) {
  for (Real& x : array.values) x.node = push({{-1, -1}, {0, 0}, {0, 0}});
}

std::vector<Tape::Gradient> Tape::gradients(const Array& output, const std::vector<double>& seed,
                                            const std::vector<const Array*>& inputs) const {
  std::vector<long double> value(steps->size());
  std::vector<double> magnitude(steps->size());
  for (int64_t i = 0; i < output.numel(); ++i) {
    if (output[i].node < 0) continue;
    value[size_t(output[i].node)] += seed[size_t(i)];
    magnitude[size_t(output[i].node)] += std::fabs(seed[size_t(i)]);
  }
  for (size_t n = steps->size(); n-- > 0;) {
    const Step& step = (*steps)[n];
    if (magnitude[n] == 0) continue;  // nothing depends on it; 0 * inf must not make a NaN
    for (int side = 0; side < 2; ++side) {
      if (step.parent[side] < 0) continue;
      value[size_t(step.parent[side])] += value[n] * step.slope[side];
      magnitude[size_t(step.parent[side])] += magnitude[n] * step.magnitude[side];
    }
  }
  std::vector<Gradient> out;
  for (const Array* input : inputs) {
    Gradient& gradient = out.emplace_back();
    for (const Real& x : input->values) {
      gradient.value.push_back(value[size_t(x.node)]);
      gradient.magnitude.push_back(magnitude[size_t(x.node)]);
    }
  }
  return out;
}

Array to_array(const Tensor& tensor) {
  Array out(tensor.shape());
  with_any(tensor.dtype(), [&]<class T>() {
    const T* from = tensor.data<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      if constexpr (sizeof(T) == 2)
        out[i] = Real(double(float(from[i])));
      else
        out[i] = Real(double(from[i]));
    }
  });
  return out;
}

}  // namespace tessera::test
