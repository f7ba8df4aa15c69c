#include "tessera/bench/core/ops_loops.h"

#include <cmath>
#include <vector>

#include "tessera/core/parallel.h"

namespace tessera::bench {

void plain_matmul(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  parallel_for(m, 16, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = c + i * n;
      for (int64_t j = 0; j < n; ++j) row[j] = 0;
      for (int64_t l = 0; l < k; ++l)
        for (int64_t j = 0; j < n; ++j) row[j] += a[i * k + l] * b[l * n + j];
    }
  });
}

void plain_add(const float* a, const float* b, float* c, int64_t count) {
  parallel_for(count, 1 << 15, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) c[i] = a[i] + b[i];
  });
}

void plain_log_softmax(const float* x, float* y, int64_t rows, int64_t width) {
  parallel_for(rows, 1024, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* row = x + i * width;
      float most = row[0], sum = 0;
      for (int64_t j = 1; j < width; ++j) most = row[j] > most ? row[j] : most;
      for (int64_t j = 0; j < width; ++j) sum += std::exp(row[j] - most);
      const float norm = most + std::log(sum);
      for (int64_t j = 0; j < width; ++j) y[i * width + j] = row[j] - norm;
    }
  });
}

void plain_sum_rows(const float* x, float* y, int64_t rows, int64_t width) {
  for (int64_t j = 0; j < width; ++j) y[j] = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) y[j] += x[i * width + j];
}

void plain_dropout(const float* x, float* y, int64_t count, float p) {
  const uint32_t threshold = uint32_t(p * 4294967296.0f);
  const float scale = 1 / (1 - p);
  parallel_for(count, 1 << 15, [=](int64_t begin, int64_t end) {
    uint32_t state = uint32_t(begin) * 2654435761u + 1;
    for (int64_t i = begin; i < end; ++i) {
      state ^= state << 13;
      state ^= state >> 17;
      state ^= state << 5;
      y[i] = state >= threshold ? x[i] * scale : 0;
    }
  });
}

void plain_adam(float* w, const float* g, float* m, float* v, int64_t count, float lr, int64_t step) {
  const float size = lr / (1 - std::pow(0.9f, float(step))), root = 1 / std::sqrt(1 - std::pow(0.999f, float(step)));
  parallel_for(count, 1 << 14, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      m[i] = 0.9f * m[i] + 0.1f * g[i];
      v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
      w[i] -= size * m[i] / (std::sqrt(v[i]) * root + 1e-8f);
    }
  });
}

}  // namespace tessera::bench
