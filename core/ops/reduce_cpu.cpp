// Reductions by fixed blocks: each block is summed by one thread in an order of its own, the block sums are added in a
// fixed tree. The block size is a constant, so the bits do not depend on the thread count.

#include "tessera/core/ops/reduce_kernels.h"
#include "tessera/core/parallel.h"
#include "tessera/core/simd.h"

namespace tessera {
namespace {

constexpr int64_t kBlock = 1 << 14;  // elements

/// Sixteen running sums in double hide the latency of addition and vectorise.
template <class T>
double block_sum(const T* x, int64_t count) {
  double lane[16] = {};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int l = 0; l < 16; ++l) lane[l] += double(x[i + l]);
  for (int l = 0; i < count; ++i, ++l) lane[l] += double(x[i]);
  return tree_sum(lane, 16);
}

template <class T>
void sum_all(const SumKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  *k.out = parallel_sum(k.count, kBlock, [=](int64_t begin, int64_t end) { return block_sum(x + begin, end - begin); });
}

template <class T>
void sum_rows(const SumRowsKernel::Args& k) {
  const T* x = static_cast<const T*>(k.x);
  T* out = static_cast<T*>(k.out);
  double* partials = k.partials;
  const int64_t rows = k.rows, width = k.width, block = SumRowsKernel::kRowBlock, blocks = (rows + block - 1) / block;
  const int64_t fork = (1 << 15) / (block * (width + 1)) + 1;
  parallel_for(blocks, fork, [=](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double* sums = partials + b * width;
      for (int64_t j = 0; j < width; ++j) sums[j] = 0;
      const int64_t last = (b + 1) * block < rows ? (b + 1) * block : rows;
      for (int64_t i = b * block; i < last; ++i)
        for (int64_t j = 0; j < width; ++j) sums[j] += double(x[i * width + j]);
    }
  });
  for (int64_t step = 1; step < blocks; step *= 2)
    for (int64_t b = 0; b + step < blocks; b += 2 * step)
      for (int64_t j = 0; j < width; ++j) partials[b * width + j] += partials[(b + step) * width + j];
  for (int64_t j = 0; j < width; ++j) out[j] = blocks > 0 ? T(partials[j]) : T(0);
}

}  // namespace

template <Isa>
void SumKernel::cpu(const Args& args) {
  args.is_double ? sum_all<double>(args) : sum_all<float>(args);
}
template void SumKernel::cpu<kIsa>(const Args&);

template <Isa>
void SumRowsKernel::cpu(const Args& args) {
  args.is_double ? sum_rows<double>(args) : sum_rows<float>(args);
}
template void SumRowsKernel::cpu<kIsa>(const Args&);

}  // namespace tessera
