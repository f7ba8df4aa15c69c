#pragma once

#include <cstdint>

/// Plain loops, parallel over rows, that a careful user would write; the compiler vectorises them for this machine.
namespace tessera::bench {

void plain_matmul(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k);
void plain_add(const float* a, const float* b, float* c, int64_t count);
void plain_log_softmax(const float* x, float* y, int64_t rows, int64_t width);
void plain_sum_rows(const float* x, float* y, int64_t rows, int64_t width);
/// Inverted dropout with one xorshift generator a range of elements.
void plain_dropout(const float* x, float* y, int64_t count, float p);
void plain_adam(float* w, const float* g, float* m, float* v, int64_t count, float lr, int64_t step);

}  // namespace tessera::bench
