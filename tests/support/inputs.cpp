#include "tessera/tests/support/inputs.h"

#include <cstring>
#include <utility>

#include "tessera/core/random.h"

namespace tessera::test {
namespace {

double unit(const Philox& random, int64_t i) {
  const Philox::Draw draw = random(uint64_t(i));
  return (double(draw.bits[0]) + double(draw.bits[1] >> 11) * 0x1p-21) * 0x1p-32;  // 53 bits
}

std::vector<double> draw(const Input& input, const Philox& random) {
  if (input.fill == Input::Fill::given) return input.list;
  const int64_t n = input.shape.numel();
  std::vector<double> values(static_cast<size_t>(n));
  const double span = input.high - input.low;
  if (input.fill == Input::Fill::uniform) {
    for (int64_t i = 0; i < n; ++i) values[size_t(i)] = input.low + span * unit(random, i);
    return values;
  }
  const int64_t slots = n + n % 2;  // an even number of slots has none centred on the middle
  for (int64_t i = 0; i < n; ++i) values[size_t(i)] = input.low + span * (double(i) + 0.5) / double(slots);
  for (int64_t i = n - 1; i > 0; --i) std::swap(values[size_t(i)], values[size_t(unit(random, i) * double(i + 1))]);
  return values;
}

Tensor filled(const Shape& shape, DType dtype, const std::vector<double>& values) {
  Tensor out = Tensor::empty(shape, dtype);
  with_any(dtype, [&]<class T>() {
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < out.numel(); ++i) {
      if constexpr (sizeof(T) == 2)
        to[i] = T(float(values[size_t(i)]));
      else
        to[i] = T(values[size_t(i)]);
    }
  });
  return out;
}

}  // namespace

Input& Input::saved() {
  is_saved = true;
  return *this;
}

Input& Input::no_grad() {
  wants_grad = false;
  return *this;
}

Input real(const Shape& shape, double low, double high) { return {.shape = shape, .low = low, .high = high}; }

Input apart(const Shape& shape, double low, double high) {
  return {.shape = shape, .fill = Input::Fill::apart, .low = low, .high = high};
}

Input given(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .fill = Input::Fill::given, .list = std::move(values)};
}

Input ids(const Shape& shape, int64_t bound, DType dtype) {
  return {.shape = shape, .dtype = dtype, .low = 0, .high = double(bound), .wants_grad = false};
}

Input given_ids(const Shape& shape, const std::vector<int64_t>& values, DType dtype) {
  return {.shape = shape,
          .dtype = dtype,
          .fill = Input::Fill::given,
          .list = std::vector<double>(values.begin(), values.end()),
          .wants_grad = false};
}

Tensors make_inputs(const std::vector<Input>& inputs, DType dtype, uint64_t seed) {
  Tensors out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    out.push_back(filled(input.shape, input.dtype == DType::f64 ? dtype : input.dtype, draw(input, Philox(seed, i))));
  }
  return out;
}

Tensor random_seed(const Shape& shape, DType dtype, uint64_t seed) {
  return filled(shape, dtype, draw(real(shape), Philox(seed, 999)));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return a.numel() == 0 || std::memcmp(a.raw(), b.raw(), size_t(a.numel()) * size_of(a.dtype())) == 0;
}

}  // namespace tessera::test
