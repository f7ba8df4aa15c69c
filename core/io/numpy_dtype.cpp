#include "tessera/core/io/numpy_dtype.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tessera/core/error.h"

namespace tessera {
namespace {

template <class T>
T element(const char* at, bool swap) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Calls f(from, to) for each element: its position in the file and in the row-major tensor.
template <class F>
void each_position(const Shape& shape, bool fortran_order, const F& f) {
  const int64_t count = shape.numel();
  const int dims = shape.ndim();
  if (!fortran_order || dims < 2) {
    for (int64_t i = 0; i < count; ++i) f(i, i);
    return;
  }
  int64_t index[Shape::kMaxDims] = {}, strides[Shape::kMaxDims];
  int64_t stride = 1;
  for (int d = 0; d < dims; ++d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  int64_t from = 0;
  for (int64_t to = 0; to < count; ++to) {
    f(from, to);
    for (int d = dims - 1; d >= 0; --d) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

template <class From, class To>
void convert(const NumpyDType& dtype, const Shape& shape, bool fortran_order, const char* data, To* out) {
  if constexpr (std::is_same_v<From, To>) {
    if (!dtype.big_endian && (!fortran_order || shape.ndim() < 2)) {
      if (shape.numel() > 0) std::memcpy(out, data, size_t(shape.numel()) * sizeof(To));
      return;
    }
  }
  each_position(shape, fortran_order, [&](int64_t from, int64_t to) {
    out[to] = To(element<From>(data + from * int64_t(sizeof(From)), dtype.big_endian));
  });
}

}  // namespace

NumpyDType NumpyDType::parse(std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  NumpyDType result;
  if (text.size() < 2) return result;
  size_t at = 0;
  if (std::strchr("<>|=", text[0]) != nullptr) {
    result.big_endian = text[0] == '>';
    at = 1;
  }
  result.kind = text[at++];
  if (at == text.size() || text.size() - at > 9) return result;
  for (; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') {
      result.bytes = 0;
      return result;
    }
    result.bytes = result.bytes * 10 + (text[at] - '0');
  }
  if (result.kind == 'U') result.bytes *= 4;
  struct Known {
    char kind;
    int64_t bytes;
    DType dtype;
  };
  static constexpr Known kKnown[] = {{'f', 4, DType::f32}, {'f', 8, DType::f64}, {'f', 2, DType::f16}, {'i', 4, DType::i32},
                                     {'i', 8, DType::i64}, {'u', 1, DType::u8},  {'b', 1, DType::u8},  {'i', 1, DType::i32},
                                     {'i', 2, DType::i32}, {'u', 2, DType::i32}, {'u', 4, DType::i64}, {'u', 8, DType::i64}};
  for (const Known& known : kKnown)
    if (known.kind == result.kind && known.bytes == result.bytes) {
      result.dtype = known.dtype;
      result.readable = true;
    }
  return result;
}

Tensor numpy_tensor(const NumpyDType& dtype, const Shape& shape, bool fortran_order, const char* data,
                    const std::string& where) {
  check<InternalError>(dtype.readable, "numpy_tensor: the dtype has no tensor form");
  Tensor out = Tensor::empty(shape, dtype.dtype);
  const auto into = [&]<class From, class To>() {
    convert<From, To>(dtype, shape, fortran_order, data, out.mutable_data<To>());
  };
  switch (dtype.kind) {
    case 'f':
      if (dtype.bytes == 8)
        into.operator()<double, double>();
      else if (dtype.bytes == 4)
        into.operator()<float, float>();
      else {
        f16* values = out.mutable_data<f16>();
        each_position(shape, fortran_order, [&](int64_t from, int64_t to) {
          values[to].bits = element<uint16_t>(data + 2 * from, dtype.big_endian);
        });
      }
      break;
    case 'i':
      if (dtype.bytes == 8)
        into.operator()<int64_t, int64_t>();
      else if (dtype.bytes == 4)
        into.operator()<int32_t, int32_t>();
      else if (dtype.bytes == 2)
        into.operator()<int16_t, int32_t>();
      else
        into.operator()<int8_t, int32_t>();
      break;
    default:
      if (dtype.bytes == 8)
        into.operator()<uint64_t, int64_t>();
      else if (dtype.bytes == 4)
        into.operator()<uint32_t, int64_t>();
      else if (dtype.bytes == 2)
        into.operator()<uint16_t, int32_t>();
      else
        into.operator()<uint8_t, uint8_t>();
  }
  if (dtype.kind == 'b') {
    const uint8_t* values = out.data<uint8_t>();
    for (int64_t i = 0; i < shape.numel(); ++i)
      check<IoError>(values[i] <= 1, "{}: a boolean has the value {} at position {}, expected 0 or 1", where, int(values[i]),
                     i);
  }
  if (dtype.kind == 'u' && dtype.bytes == 8) {
    const int64_t* values = out.data<int64_t>();
    for (int64_t i = 0; i < shape.numel(); ++i)
      check<IoError>(values[i] >= 0, "{}: the unsigned value {} at position {} is beyond int64", where, uint64_t(values[i]),
                     i);
  }
  return out;
}

}  // namespace tessera
