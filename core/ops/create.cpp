#include "tessera/core/ops/create.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/create_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/tensor_state.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 16;

/// Towards zero, and to the nearest end of the range where it lies beyond; NaN gives 0.
template <class To, class From>
To within(From value) {
  constexpr To low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  if (value != value) return 0;
  // high itself may not be a From; the first power of two beyond it is.
  if (value >= From(high / 2 + 1) * 2) return high;
  if (value <= From(low)) return low;
  return To(value);
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>)
    return value;
  else if constexpr (sizeof(From) == 2)
    return convert<To>(float(value));
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return within<To>(value);
  else
    return To(value);
}

Tensor cast_elements(const Tensor& x, DType dtype) {
  Tensor out = Tensor::empty(x.shape(), dtype, x.device());
  const bool narrow = x.dtype() == DType::f32 && is_floating(dtype) && size_of(dtype) == 2,
             widen = dtype == DType::f32 && is_floating(x.dtype()) && size_of(x.dtype()) == 2;
  if (narrow || widen) {
    run<CastKernel>(x.device(), {(narrow ? dtype : x.dtype()) == DType::f16, narrow, x.numel(), x.raw(), out.mutable_raw()});
    return out;
  }
  with_any(x.dtype(), [&]<class From>() {
    with_any(dtype, [&]<class To>() {
      const From* from = x.data<From>();
      To* to = out.mutable_data<To>();
      parallel_for(x.numel(), kGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if constexpr (sizeof(To) == 2 && !std::is_same_v<To, From>)
            to[i] = To(convert<float>(from[i]));
          else
            to[i] = convert<To>(from[i]);
        }
      });
    });
  });
  return out;
}

}  // namespace

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor out = Tensor::empty(shape, dtype, device);
  with_any(dtype, [&]<class T>() {
    T* y = out.mutable_data<T>();
    T filled;
    if constexpr (sizeof(T) == 2)
      filled = T(float(value));
    else
      filled = T(value);
    parallel_for(out.numel(), kGrain, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = filled;
    });
  });
  return out;
}

Tensor zeros(const Shape& shape, DType dtype, Device device) { return full(shape, 0, dtype, device); }
Tensor ones(const Shape& shape, DType dtype, Device device) { return full(shape, 1, dtype, device); }

Tensor uniform(const Shape& shape, double low, double high, Generator& generator, DType dtype) {
  Tensor out = Tensor::empty(shape, dtype);
  const Philox random = generator.next();
  with_float(dtype, "uniform", [&]<class T>() {
    T* y = out.mutable_data<T>();
    // Rounding to T may carry a draw up to `high`, which is not in the interval.
    const T top = double(T(high)) < high || !(low < high) ? T(high) : std::nextafter(T(high), T(low));
    // 24 bits of one word, or 53 of two.
    const auto unit = [=](uint64_t i) {
      if constexpr (sizeof(T) == 4) {
        return double(Philox::unit(random.word(i)));
      } else {
        const Philox::Draw draw = random(i / 2);
        const uint64_t first = draw.bits[i % 2 * 2], second = draw.bits[i % 2 * 2 + 1];
        return double((first << 32 | second) >> 11) * 0x1p-53;
      }
    };
    parallel_for(out.numel(), 4096, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = std::min(top, T(low + (high - low) * unit(uint64_t(i))));
    });
  });
  return out;
}

Tensor normal(const Shape& shape, Generator& generator, DType dtype) {
  Tensor out = Tensor::empty(shape, dtype);
  const Philox random = generator.next();
  with_float(dtype, "normal", [&]<class T>() {
    T* y = out.mutable_data<T>();
    parallel_for(out.numel(), 4096, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Philox::Draw draw = random(uint64_t(i));
        const double u = (double(draw.bits[0]) + 1) * 0x1p-32, v = double(draw.bits[1]) * 0x1p-32;
        y[i] = T(std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v));
      }
    });
  });
  return out;
}

Tensor clone(const Tensor& x) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (x.numel() > 0) std::memcpy(out.mutable_raw(), x.raw(), size_t(x.numel()) * size_of(x.dtype()));
  TensorState::of(out)->from_gradient = TensorState::of(x)->from_gradient;
  return out;
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = cast_elements(x, dtype);
  if (is_floating(x.dtype()) && is_floating(dtype))
    record("cast", out, {x}, [from = x.dtype()](const Tensor& grad, Gradients& into) { into.add(0, cast(grad, from)); });
  return out;
}

}  // namespace tessera
