#pragma once

#include <cstdint>
#include <vector>

/// Loops shaped like PyTorch's for an expanded index (ScatterGatherKernel.cpp, cpu_scatter_reduce_expanded_index): every
/// call sorts int64 keys and positions by 8-bit radix passes, then reduces row by row in the sorted order.
namespace tessera::bench {

enum class TorchReduce { sum, mean, max };

/// Sorted keys and the positions they came from.
struct TorchSort {
  std::vector<int64_t> keys, positions, spare_keys, spare_positions;
  void operator()(const int64_t* index, int64_t count, int64_t num_keys);
};

/// out (rows x width) from src (count x width), by index.
void torch_shaped_scatter(TorchSort& sort, const int64_t* index, int64_t count, const float* src, int64_t width,
                          int64_t rows, TorchReduce reduce, float* out);

/// out (count x width) = x[index].
void torch_shaped_gather(const float* x, const int64_t* index, int64_t count, int64_t width, float* out);

/// Gradient of the maximum: the mask of winners (count x width), their number by a scatter, the shares by a gather.
/// `mask` and `grad_src` are count x width; `winners` rows x width.
void torch_shaped_max_gradient(TorchSort& sort, const int64_t* index, int64_t count, const float* src, const float* out,
                               const float* grad, int64_t width, int64_t rows, float* mask, float* winners, float* grad_src);

}  // namespace tessera::bench
