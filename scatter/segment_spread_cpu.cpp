// What goes back from segments to their rows, on CPUs: a pass over the result's rows, in chunks of about equal rows, with
// what a segment has in the cache. Large results are written past the caches, in whole lines, where the rows allow it. The
// backward pass of a product walks a segment forth and back, multiplying by what is before and what is behind: right with
// any number of zeros, without a division. It needs no memory but the result's, and two rows for each piece of a hub, whose
// products say what is before and behind each piece, so that threads share a hub.

#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"
#include "tessera/scatter/lanes_kernels.h"
#include "tessera/scatter/segment_spread_kernels.h"

namespace tessera {
namespace {

constexpr int64_t kForkElements = int64_t{1} << 18;  // rows x width below which a second thread costs more than it brings
constexpr int64_t kStreamBytes = int64_t{1} << 24;   // results of more bytes are written past the caches

using Spread = SegmentSpreadKernel::Args;

/// The place of a vector of winners that a row of the plan is, or not.
template <class T>
void spread_winner(const Spread& k) {
  using A = simd::Compute<T>;
  constexpr int L = simd::kLanes<float> / (sizeof(A) / 4);
  const T* grad = static_cast<const T*>(k.grad);
  T* out = static_cast<T*>(k.out);
  const int64_t width = k.width;
  using Bits = Place<A>;
  using V = simd::Vec<A, L>;
  const int64_t grain = kForkElements / (kSegmentChunkCost * (width + 4)) + 1;
  // Whole aligned lines can be written past the caches.
  const bool stream = sizeof(T) == sizeof(A) && width * int64_t(sizeof(T)) % 64 == 0 &&
                      reinterpret_cast<uintptr_t>(out) % 64 == 0 &&
                      k.plan.num_rows * width * int64_t(sizeof(T)) > kStreamBytes;
  parallel_for(k.plan.num_chunks, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s) {
        const int64_t base = k.plan.offsets[s];
        const int64_t begin = chunk.slot >= 0 ? chunk.begin : base,
                      end = chunk.slot >= 0 ? chunk.end : k.plan.offsets[s + 1];
        const T* g = grad + s * width;
        const int32_t* winner = k.winner + s * width;
        for (int64_t p = begin; p < end; ++p) {
          T* row = out + (k.plan.order != nullptr ? k.plan.order[p] : p) * width;
          const auto here = simd::splat<L>(Bits(p - base));
          int64_t j = 0;
          for (; j + L <= width; j += L) {
            const V v = get_places<L, Bits>(winner + j) == here ? get<L>(g + j) : V{};
            if constexpr (sizeof(T) == sizeof(A))
              if (stream) {
                simd::stream(row + j, v);
                continue;
              }
            put<L>(row + j, v);
          }
          for (; j < width; ++j) row[j] = winner[j] == int32_t(p - base) ? g[j] : T();
        }
      }
    }
    simd::stream_fence();
  });
}

template <class T>
void spread_deviation(const Spread& k) {
  using A = simd::Compute<T>;
  const T* x = static_cast<const T*>(k.x);
  const T* grad = static_cast<const T*>(k.grad);
  const A* center = static_cast<const A*>(k.center);
  T* out = static_cast<T*>(k.out);
  const int64_t width = k.width;
  const int64_t grain = kForkElements / (kSegmentChunkCost * (width + 4)) + 1;
  parallel_for(k.plan.num_chunks, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s) {
        const int64_t begin = chunk.slot >= 0 ? chunk.begin : k.plan.offsets[s];
        const int64_t end = chunk.slot >= 0 ? chunk.end : k.plan.offsets[s + 1];
        for (int64_t p = begin; p < end; ++p) {
          const int64_t row = (k.plan.order != nullptr ? k.plan.order[p] : p) * width;
          for (int64_t j = 0; j < width; ++j)
            out[row + j] = T((A(x[row + j]) - center[s * width + j]) * A(grad[s * width + j]));
        }
      }
    }
  });
}

/// Row of place p, from column j.
TESSERA_INLINE int64_t element(const Spread& k, int64_t p, int64_t j) {
  return (k.plan.order != nullptr ? k.plan.order[p] : p) * k.width + j;
}

/// Calls f(column, lanes as a constant) for vectors of columns, then for those that are left.
template <class T, class F>
TESSERA_INLINE void for_columns(int64_t width, const F& f) {
  constexpr int L = simd::kLanes<T>;
  int64_t j = 0;
  for (; j + L <= width; j += L) f.template operator()<L>(j);
  for (; j < width; ++j) f.template operator()<1>(j);
}

/// Columns [j, j + L) of places [begin, end): what is before a row goes into its result on the way forth, what is behind it
/// on the way back.
template <class T, int L>
TESSERA_INLINE void product_columns(const Spread& k, int64_t begin, int64_t end, int64_t j, Lanes<T, L> before,
                                    Lanes<T, L> behind) {
  const T* x = static_cast<const T*>(k.x);
  T* out = static_cast<T*>(k.out);
  for (int64_t p = begin; p < end; ++p) {
    const int64_t i = element(k, p, j);
    put<L>(out + i, before);
    before = before * get<L>(x + i);
  }
  for (int64_t p = end - 1; p >= begin; --p) {
    const int64_t i = element(k, p, j);
    put<L>(out + i, get<L>(out + i) * behind);
    behind = behind * get<L>(x + i);
  }
}

/// What is before a segment's first row.
template <class T, int L>
TESSERA_INLINE Lanes<T, L> first_factor(const Spread& k, int64_t segment, int64_t j) {
  const Lanes<T, L> grad = get<L>(static_cast<const T*>(k.grad) + segment * k.width + j);
  if (k.initial == nullptr) return grad;
  return grad * get<L>(static_cast<const T*>(k.initial) + segment * k.width + j);
}

template <class T>
void spread_product(const Spread& k) {
  const int64_t width = k.width;
  const int64_t grain = kForkElements / (kSegmentChunkCost * (width + 4)) + 1;
  // Of each piece of a hub: what is before it, and what is behind it, which is its own product to begin with.
  T* before = static_cast<T*>(k.partials);
  T* behind = before + k.plan.num_slots * width;
  parallel_for(k.plan.num_hubs > 0 ? k.plan.num_chunks : 0, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      if (chunk.slot < 0) continue;
      for_columns<T>(
          width, [&]<int L>(int64_t j) __attribute__((always_inline)) {
            Lanes<T, L> product = Lanes<T, L>{} + T(1);
            for (int64_t p = chunk.begin; p < chunk.end; ++p)
              product = product * get<L>(static_cast<const T*>(k.x) + element(k, p, j));
            put<L>(behind + chunk.slot * width + j, product);
          });
    }
  });
  parallel_for(k.plan.num_hubs, 16, [=, &k](int64_t first, int64_t last) {
    for (int64_t h = first; h < last; ++h) {
      const SegmentHub& hub = k.plan.hubs[h];
      for_columns<T>(
          width, [&]<int L>(int64_t j) __attribute__((always_inline)) {
            Lanes<T, L> product = first_factor<T, L>(k, hub.segment, j);
            for (int64_t s = hub.slot_begin; s < hub.slot_end; ++s) {
              put<L>(before + s * width + j, product);
              product = product * get<L>(behind + s * width + j);
            }
            product = Lanes<T, L>{} + T(1);
            for (int64_t s = hub.slot_end - 1; s >= hub.slot_begin; --s) {
              const Lanes<T, L> own = get<L>(behind + s * width + j);
              put<L>(behind + s * width + j, product);
              product = product * own;
            }
          });
    }
  });
  parallel_for(k.plan.num_chunks, grain, [=, &k](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const SegmentChunk& chunk = k.plan.chunks[c];
      for (int64_t s = chunk.segment_begin; s < chunk.segment_end; ++s)
        for_columns<T>(
            width, [&]<int L>(int64_t j) __attribute__((always_inline)) {
              if (chunk.slot >= 0)
                product_columns<T, L>(k, chunk.begin, chunk.end, j, get<L>(before + chunk.slot * width + j),
                                      get<L>(behind + chunk.slot * width + j));
              else
                product_columns<T, L>(k, k.plan.offsets[s], k.plan.offsets[s + 1], j, first_factor<T, L>(k, s, j),
                                      Lanes<T, L>{} + T(1));
            });
    }
  });
}

template <class T>
void spread_of(const Spread& k) {
  switch (k.op) {
    case SpreadOp::winner: return spread_winner<T>(k);
    case SpreadOp::deviation: return spread_deviation<T>(k);
    case SpreadOp::product:
      if constexpr (sizeof(T) > 2) spread_product<T>(k);
  }
}

}  // namespace

template <Isa>
void SegmentSpreadKernel::cpu(const Args& args) {
  switch (args.type) {
    case FloatType::f32: return spread_of<float>(args);
    case FloatType::f64: return spread_of<double>(args);
    case FloatType::bf16: return spread_of<bf16>(args);
    case FloatType::f16: return spread_of<f16>(args);
  }
}
template void SegmentSpreadKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
