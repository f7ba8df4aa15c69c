// Elementwise loops: plain indexed loops that the compiler vectorises for each instruction set. All are memory-bound, so
// the only care taken is one pass over each array and no fork below the size where it pays. A broadcast is walked as rows
// along the last dimension, in which each input either runs or stands still: three inner loops serve every shape.

#include "tessera/core/ops/elementwise_kernels.h"

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int64_t kGrain = 1 << 15;

/// Where row `row` starts in both inputs, kept up to date from one row to the next.
struct Rows {
  const Walk2& walk;
  int64_t index[6];
  int64_t a = 0, b = 0;

  TESSERA_INLINE Rows(const Walk2& w, int64_t row) : walk(w) {
    for (int d = walk.ndim - 2; d >= 0; --d) {
      index[d] = row % walk.size[d];
      row /= walk.size[d];
      a += index[d] * walk.stride_a[d];
      b += index[d] * walk.stride_b[d];
    }
  }
  TESSERA_INLINE void next() {
    for (int d = walk.ndim - 2; d >= 0; --d) {
      a += walk.stride_a[d];
      b += walk.stride_b[d];
      if (++index[d] < walk.size[d]) return;
      a -= walk.size[d] * walk.stride_a[d];
      b -= walk.size[d] * walk.stride_b[d];
      index[d] = 0;
    }
  }
};

/// One row: each input either runs along it or stands still.
using RowFunction = void (*)(const void* a, bool a_runs, const void* b, bool b_runs, void* out, int64_t count);

/// The walk, which is the same for every operation and element type: only the rows are compiled for each.
void walk_rows(const BinaryKernel::Args& k, int64_t in_size, int64_t out_size, RowFunction row) {
  const char* a = static_cast<const char*>(k.a);
  const char* b = static_cast<const char*>(k.b);
  char* out = static_cast<char*>(k.out);
  const Walk2& w = k.walk;
  const int last = w.ndim - 1;
  const int64_t width = w.size[last];
  const bool a_runs = w.stride_a[last] != 0, b_runs = w.stride_b[last] != 0;
  if (last == 0) {
    parallel_for(width, kGrain, [=](int64_t begin, int64_t end) {
      row(a_runs ? a + begin * in_size : a, a_runs, b_runs ? b + begin * in_size : b, b_runs, out + begin * out_size,
          end - begin);
    });
    return;
  }
  parallel_for(k.count / width, kGrain / width + 1, [=, &w](int64_t begin, int64_t end) {
    Rows at(w, begin);
    for (int64_t i = begin; i < end; ++i, at.next())
      row(a + at.a * in_size, a_runs, b + at.b * in_size, b_runs, out + i * width * out_size, width);
  });
}

template <class T, class R, class F>
TESSERA_INLINE void each(const BinaryKernel::Args& k, F) {
  walk_rows(k, sizeof(T), sizeof(R),
            [](const void* pa, bool a_runs, const void* pb, bool b_runs, void* pout, int64_t count) {
              const T* a = static_cast<const T*>(pa);
              const T* b = static_cast<const T*>(pb);
              R* out = static_cast<R*>(pout);
              if (a_runs && b_runs) {
                for (int64_t i = 0; i < count; ++i) out[i] = F()(a[i], b[i]);
              } else if (a_runs) {
                const T y = *b;
                for (int64_t i = 0; i < count; ++i) out[i] = F()(a[i], y);
              } else {
                const T x = *a;
                for (int64_t i = 0; i < count; ++i) out[i] = F()(x, b_runs ? b[i] : *b);
              }
            });
}

template <class T>
void arithmetic(const BinaryKernel::Args& k) {
  switch (k.op) {
    case Binary::add: return each<T, T>(k, [](T a, T b) { return a + b; });
    case Binary::sub: return each<T, T>(k, [](T a, T b) { return a - b; });
    case Binary::mul: return each<T, T>(k, [](T a, T b) { return a * b; });
    case Binary::div: return each<T, T>(k, [](T a, T b) { return a / b; });
    case Binary::minimum: return each<T, T>(k, [](T a, T b) { return a <= b || a != a ? a : b; });
    case Binary::maximum: return each<T, T>(k, [](T a, T b) { return a >= b || a != a ? a : b; });
    default: return;
  }
}

template <class T, bool kNegate>
void comparison(const BinaryKernel::Args& k) {
  switch (k.op) {
    case Binary::equal: return each<T, uint8_t>(k, [](T a, T b) { return uint8_t((a == b) != kNegate); });
    case Binary::less: return each<T, uint8_t>(k, [](T a, T b) { return uint8_t((a < b) != kNegate); });
    case Binary::less_equal: return each<T, uint8_t>(k, [](T a, T b) { return uint8_t((a <= b) != kNegate); });
    default: return;
  }
}

/// Which input the minimum or maximum takes, for its gradient.
template <class T>
void choice(const BinaryKernel::Args& k) {
  if (k.op == Binary::min_is_a) return each<T, uint8_t>(k, [](T a, T b) { return uint8_t(a <= b || a != a); });
  each<T, uint8_t>(k, [](T a, T b) { return uint8_t(a >= b || a != a); });
}

template <class T>
void run_binary(const BinaryKernel::Args& k) {
  if constexpr (T(0.5) != T(0)) {
    if (k.op < Binary::equal) return arithmetic<T>(k);
    if (k.op == Binary::min_is_a || k.op == Binary::max_is_a) return choice<T>(k);
  }
  k.negate ? comparison<T, true>(k) : comparison<T, false>(k);
}

template <class U>
void select(const SelectKernel::Args& k) {
  const U* a = static_cast<const U*>(k.a);
  const U* b = static_cast<const U*>(k.b);
  const uint8_t* choice = k.choice;
  U* out = static_cast<U*>(k.out);
  const bool invert = k.invert;
  parallel_for(k.count, kGrain, [=](int64_t begin, int64_t end) {
    if (a != nullptr && b != nullptr) {
      for (int64_t i = begin; i < end; ++i) out[i] = (choice[i] != 0) != invert ? a[i] : b[i];
    } else {
      const U* some = a != nullptr ? a : b;
      const bool flip = invert != (a == nullptr);
      for (int64_t i = begin; i < end; ++i) {
        const U x = some[i];
        out[i] = (choice[i] != 0) != flip ? x : U(0);
      }
    }
  });
}

}  // namespace

template <Isa>
void BinaryKernel::cpu(const Args& k) {
  switch (k.element) {
    case Element::f32: return run_binary<float>(k);
    case Element::f64: return run_binary<double>(k);
    case Element::i32: return run_binary<int32_t>(k);
    case Element::i64: return run_binary<int64_t>(k);
  }
}
template void BinaryKernel::cpu<kIsa>(const Args&);

template <Isa>
void SelectKernel::cpu(const Args& args) {
  args.is_8_bytes ? select<uint64_t>(args) : select<uint32_t>(args);
}
template void SelectKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
