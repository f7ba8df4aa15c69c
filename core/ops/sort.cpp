#include "tessera/core/ops/sort.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <functional>

#include "tessera/core/autograd.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

/// Whether x stands before y in rising order.
template <class T>
bool before(T x, T y) {
  return x < y || (is_nan(y) && !is_nan(x));
}

/// An unsigned number in the order of x.
uint32_t rank_of(float x) {
  if (x != x) return UINT32_MAX;
  const uint32_t bits = std::bit_cast<uint32_t>(x + 0.0f);  // -0 is 0
  return bits ^ ((bits >> 31) != 0 ? UINT32_MAX : 0x80000000u);
}
uint32_t rank_of(int32_t x) { return uint32_t(x) ^ 0x80000000u; }

/// The first k of n in order. Equal elements follow their index, so any algorithm is stable.
template <class Item, class Before>
void first_in_order(Item* items, int64_t n, int64_t k, Before comes_first) {
  if (k < n && k > 0) std::nth_element(items, items + k - 1, items + n, comes_first);
  std::sort(items, items + k, comes_first);
}

/// The first `k` of each line in the order asked for. Elements of four bytes are sorted as one number with their index
/// below: no branch on floats.
template <class T>
void order_lines(const T* x, const Lines& lines, int64_t k, bool descending, T* values, int32_t* indices) {
  const int64_t n = lines.length, inner = lines.inner;
  parallel_for(lines.outer * inner, (1 << 10) / (n + 1) + 1, [=](int64_t begin, int64_t end) {
    struct Item {
      T value;
      int32_t index;
    };
    Scratch<Item> items(sizeof(T) == 4 ? 0 : n);
    Scratch<uint64_t> packed(sizeof(T) == 4 ? n : 0);
    for (int64_t line = begin; line < end; ++line) {
      const int64_t outer = line / inner, column = line % inner;
      const T* from = x + outer * n * inner + column;
      int32_t* to = indices + outer * k * inner + column;
      if constexpr (sizeof(T) == 4) {
        const uint32_t flip = descending ? UINT32_MAX : 0;
        for (int64_t i = 0; i < n; ++i) packed[i] = uint64_t(rank_of(from[i * inner]) ^ flip) << 32 | uint64_t(i);
        first_in_order(packed.data(), n, k, std::less<uint64_t>());
        for (int64_t i = 0; i < k; ++i) to[i * inner] = int32_t(uint32_t(packed[i]));
      } else {
        for (int64_t i = 0; i < n; ++i) items[i] = {from[i * inner], int32_t(i)};
        first_in_order(items.data(), n, k, [descending](const Item& a, const Item& b) {
          if (before(a.value, b.value)) return !descending;
          if (before(b.value, a.value)) return descending;
          return a.index < b.index;
        });
        for (int64_t i = 0; i < k; ++i) to[i * inner] = items[i].index;
      }
      for (int64_t i = 0; i < k; ++i) values[(outer * k + i) * inner + column] = from[to[i * inner] * inner];
    }
  });
}

Sorted ordered(const char* op, const Tensor& x, int dim, int64_t k, bool descending) {
  const Lines lines = lines_of(op, x.shape(), dim);
  check(lines.length <= INT32_MAX, "{}: x has shape {}, but lines of more than 2^31 - 1 elements are not supported", op,
        x.shape());
  const Shape shape = x.shape().with(dim, k);
  Sorted out{Tensor::empty(shape, x.dtype(), x.device()), Tensor::empty(shape, DType::i32, x.device())};
  const auto run = [&]<class T>(T) {
    order_lines(x.data<T>(), lines, k, descending, out.values.mutable_data<T>(), out.indices.mutable_data<int32_t>());
  };
  switch (x.dtype()) {
    case DType::f32: run(float()); break;
    case DType::f64: run(double()); break;
    case DType::i32: run(int32_t()); break;
    case DType::i64: run(int64_t()); break;
    default: fail<Unsupported>("{}: dtype {} is not supported, use f32, f64, i32 or i64", op, x.dtype());
  }
  record(op, out.values, {x},
         [indices = Saved(out.indices), of_x = x.shape(), lines, k](const Tensor& grad, Gradients& into) {
           Tensor result = zeros(of_x, grad.dtype(), grad.device());
           with_float(grad.dtype(), "sort", [&]<class T>() {
             const T* from = grad.data<T>();
             const int32_t* index = indices.get().data<int32_t>();
             T* to = result.mutable_data<T>();
             const int64_t step = k * lines.inner;
             for (int64_t i = 0; i < grad.numel(); ++i)
               to[(i / step * lines.length + index[i]) * lines.inner + i % lines.inner] = from[i];
           });
           into.add(0, result);
         });
  return out;
}

}  // namespace

Sorted sort(const Tensor& x, int dim, bool descending) {
  const int at = dim_of("sort", x.shape(), dim);
  return ordered("sort", x, at, x.dim(at), descending);
}

Sorted topk(const Tensor& x, int64_t k, int dim, bool largest) {
  const int at = dim_of("topk", x.shape(), dim);
  check(k >= 0 && k <= x.dim(at), "topk: k is {} but needs to be in [0, {}]", k, x.dim(at));
  return ordered("topk", x, at, k, largest);
}

}  // namespace tessera
