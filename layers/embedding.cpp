#include "tessera/layers/embedding.h"

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/index.h"

namespace tessera {

Embedding::Embedding(int64_t count, int64_t channels, Generator& generator)
    : weight(normal(Shape{count, channels}, generator).set_requires_grad()) {}

Tensor Embedding::operator()(const Tensor& ids) const { return index_select(weight, ids); }

}  // namespace tessera
