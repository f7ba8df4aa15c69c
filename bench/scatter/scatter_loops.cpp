#include "tessera/bench/scatter/scatter_loops.h"

#include <algorithm>
#include <limits>

#include "tessera/core/parallel.h"

namespace tessera::bench {

void TorchSort::operator()(const int64_t* index, int64_t count, int64_t num_keys) {
  keys.resize(size_t(count));
  positions.resize(size_t(count));
  spare_keys.resize(size_t(count));
  spare_positions.resize(size_t(count));
  parallel_for(count, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      keys[size_t(i)] = index[i];
      positions[size_t(i)] = i;
    }
  });
  const int64_t parts = threads(), part = (count + parts - 1) / parts;
  std::vector<int64_t> places(size_t(parts) * 256);
  for (int shift = 0; shift < 62 && ((num_keys - 1) >> shift) > 0; shift += 8) {
    std::fill(places.begin(), places.end(), 0);
    parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p)
        for (int64_t i = p * part; i < std::min(count, (p + 1) * part); ++i)
          ++places[size_t(p * 256 + ((keys[size_t(i)] >> shift) & 255))];
    });
    int64_t total = 0;
    for (int64_t b = 0; b < 256; ++b)
      for (int64_t p = 0; p < parts; ++p) {
        const int64_t n = places[size_t(p * 256 + b)];
        places[size_t(p * 256 + b)] = total;
        total += n;
      }
    parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p)
        for (int64_t i = p * part; i < std::min(count, (p + 1) * part); ++i) {
          const int64_t to = places[size_t(p * 256 + ((keys[size_t(i)] >> shift) & 255))]++;
          spare_keys[size_t(to)] = keys[size_t(i)];
          spare_positions[size_t(to)] = positions[size_t(i)];
        }
    });
    keys.swap(spare_keys);
    positions.swap(spare_positions);
  }
}

void torch_shaped_scatter(TorchSort& sort, const int64_t* index, int64_t count, const float* src, int64_t width,
                          int64_t rows, TorchReduce reduce, float* out) {
  sort(index, count, rows);
  // The non-empty rows and where they begin: two passes over the keys there.
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < count; ++i)
    if (i == 0 || sort.keys[size_t(i)] != sort.keys[size_t(i) - 1]) begins.push_back(i);
  begins.push_back(count);
  std::fill(out, out + rows * width, 0.0f);
  parallel_for(int64_t(begins.size()) - 1, 1, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t begin = begins[size_t(r)], end = begins[size_t(r) + 1];
      float* __restrict to = out + sort.keys[size_t(begin)] * width;
      if (reduce == TorchReduce::max)
        for (int64_t j = 0; j < width; ++j) to[j] = -std::numeric_limits<float>::infinity();
      for (int64_t i = begin; i < end; ++i) {
        const float* from = src + sort.positions[size_t(i)] * width;
        asm volatile("" : : : "memory");  // as there: the row is stored and loaded again for every source row
        if (reduce == TorchReduce::max)
          for (int64_t j = 0; j < width; ++j) to[j] = from[j] > to[j] || from[j] != from[j] ? from[j] : to[j];
        else
          for (int64_t j = 0; j < width; ++j) to[j] += from[j];
      }
      if (reduce == TorchReduce::mean)
        for (int64_t j = 0; j < width; ++j) to[j] /= float(end - begin);
    }
  });
}

void torch_shaped_gather(const float* x, const int64_t* index, int64_t count, int64_t width, float* out) {
  parallel_for(count, std::max<int64_t>(1, 32768 / width), [=](int64_t begin, int64_t end) {
    for (int64_t e = begin; e < end; ++e) {
      const float* from = x + index[e] * width;
      float* to = out + e * width;
      for (int64_t j = 0; j < width; ++j) to[j] = from[j];
    }
  });
}

void torch_shaped_max_gradient(TorchSort& sort, const int64_t* index, int64_t count, const float* src, const float* out,
                               const float* grad, int64_t width, int64_t rows, float* mask, float* winners,
                               float* grad_src) {
  const auto each = [&](auto f) {
    parallel_for(count * width, 1 << 15, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i);
    });
  };
  torch_shaped_gather(out, index, count, width, mask);
  each([=](int64_t i) { mask[i] = src[i] == mask[i] ? 1.0f : 0.0f; });
  torch_shaped_scatter(sort, index, count, mask, width, rows, TorchReduce::sum, winners);
  parallel_for(rows * width, 1 << 15, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) winners[i] = grad[i] / winners[i];
  });
  torch_shaped_gather(winners, index, count, width, grad_src);
  each([=](int64_t i) { grad_src[i] *= mask[i]; });
}

}  // namespace tessera::bench
