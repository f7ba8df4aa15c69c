#include "tessera/layers/norm/batch_norm.h"

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/norm.h"
#include "tessera/layers/init.h"

namespace tessera {

BatchNorm1d::BatchNorm1d(int64_t channels, BatchNormConfig given) : config(given) {
  if (config.affine) {
    weight = one_parameter(Shape{channels});
    bias = zero_parameter(Shape{channels});
  }
  if (config.track_running_stats) {
    running_mean = zeros(Shape{channels});
    running_var = ones(Shape{channels});
    num_batches_tracked = zeros(Shape{}, DType::i64);
  }
}

Tensor BatchNorm1d::operator()(const Tensor& x) const {
  Tensor mean = running_mean, variance = running_var;  // handles of the module's own arrays
  const Tensor out =
      batch_norm(x, weight, bias, mean, variance, {.training = training, .momentum = config.momentum, .eps = config.eps});
  if (training && num_batches_tracked.defined()) {
    Tensor count = num_batches_tracked;
    ++*count.mutable_data<int64_t>();
  }
  return out;
}

}  // namespace tessera
