// Sparse times dense with a sum or a mean of 16-bit rows, on CPUs: half the bytes to fetch, added in float, rounded once per
// element of the result. The loop is that of spmm_cpu.cpp over blocks of twice as many columns (spmm_sum_kernels.h). Without
// prefetching, the conversions would keep the processor from running far enough ahead of the fetches, and 16 bits would be
// slower than 32.
// A factor per source is gathered for a chunk's edges like a weight, which saves a form.

#include "tessera/sparse/spmm_sum_kernels.h"

namespace tessera {
namespace {

constexpr int kPair = 2 * simd::kLanes<float>;  // columns of a full block

template <class T, int C>
constexpr int kMostBlocks = C == kPair ? simd::kRegisters / 4
                            : C > 1    ? 2
                                       : 1;

template <class T, int C, Factor kFactor>
SumChunk<T> tile_function(int64_t blocks, Fetch fetch) {
  constexpr int V = kMostBlocks<T, C>;
  if constexpr (C < kPair) return sum_function<T, C, V, kFactor, kFetchAny>(blocks);
  return fetch == Fetch::none ? sum_function<T, C, V, kFactor, kFetchNone>(blocks)
                              : sum_function<T, C, V, kFactor, kFetchAny>(blocks);
}

template <class T, int C>
Tiling<T> tiling(int64_t width, bool factors, Fetch fetch) {
  if constexpr (C > 1)
    if (width < C) return tiling<T, C / 2>(width, factors, fetch);
  return tiling_of<T, C, kMostBlocks<T, C>>(width, [=](int64_t blocks) {
    return factors ? tile_function<T, C, kPerEdge>(blocks, fetch) : tile_function<T, C, kOne>(blocks, fetch);
  });
}

template <class T>
void spmm(const SpmmArgs& k) {
  if (k.width == 0) return;
  const bool factors = k.weight != nullptr || k.src_scale != nullptr;
  const int64_t columns = k.width / k.heads;
  const Tiling<T> t = tiling<T, kPair>(columns, factors, fetch_of(k.x_rows * k.width * int64_t(sizeof(T))));
  sum_rows<T>(k, [&, factors, columns](const SumView<T>& a, const Chunk& chunk) {
    float buffer[kHubEdges];
    for (int64_t h = 0; h < k.heads; ++h)
      run_tiles(a, t, chunk, factors ? edge_factors(a, chunk, h, 1.0f, buffer) : nullptr, h * columns, columns);
  });
}

}  // namespace

template <Isa>
void SpmmHalfKernel::cpu(const Args& args) {
  args.type == FloatType::bf16 ? spmm<bf16>(args) : spmm<f16>(args);
}
template void SpmmHalfKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
