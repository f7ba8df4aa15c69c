#include "tessera/layers/conv/attention_heads.h"

#include <vector>

#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/index.h"
#include "tessera/core/ops/matmul.h"
#include "tessera/core/ops/reduce.h"

namespace tessera {

Tensor head_matrix(const Tensor& att) {
  const int64_t heads = att.dim(1), channels = att.dim(2);
  std::vector<int32_t> head;
  for (int64_t j = 0; j < heads * channels; ++j) head.push_back(int32_t(j / channels));
  const Tensor mask = one_hot(Tensor::from(head, Shape{heads * channels}), heads, att.dtype());
  return mul(reshape(att, Shape{heads * channels, 1}), mask);
}

Tensor head_dots(const Tensor& x, const Tensor& att) { return matmul(x, head_matrix(att)); }

Tensor head_mean(const Tensor& x, int64_t heads) {
  return heads == 1 ? x : mean(reshape(x, Shape{x.dim(0), heads, x.dim(1) / heads}), 1);
}

}  // namespace tessera
