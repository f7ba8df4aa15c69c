#include "tessera/core/metrics.h"

#include "tessera/core/ops/reduce.h"

namespace tessera {

double accuracy(const Tensor& scores, const Tensor& labels, const Tensor& rows) {
  check(scores.ndim() == 2, "accuracy: scores have shape {} but need two dimensions", scores.shape());
  const int64_t n = scores.dim(0), classes = scores.dim(1);
  check(labels.ndim() == 1 && labels.dim(0) == n && labels.dtype() == DType::i32,
        "accuracy: labels are {} {} but need to be i32 [{}]", labels.dtype(), labels.shape(), n);
  if (rows.defined())
    check(rows.ndim() == 1 && rows.dtype() == DType::i32, "accuracy: rows are {} {} but need to be i32 of one dimension",
          rows.dtype(), rows.shape());
  const int64_t count = rows.defined() ? rows.dim(0) : n;
  check(count > 0, "accuracy: no row is chosen, the share of no rows is undefined");
  const Tensor best = argmax_rows(scores.detach());
  const int32_t* predicted = best.data<int32_t>();
  const int32_t* y = labels.data<int32_t>();
  const int32_t* chosen = rows.defined() ? rows.data<int32_t>() : nullptr;
  int64_t right = 0;
  for (int64_t c = 0; c < count; ++c) {
    const int64_t i = chosen ? chosen[c] : c;
    check(i >= 0 && i < n, "accuracy: rows[{}] is {} but needs to be in [0, {})", c, i, n);
    check(y[i] >= 0 && y[i] < classes, "accuracy: labels[{}] is {} but needs to be in [0, {})", i, y[i], classes);
    right += predicted[i] == y[i];
  }
  return double(right) / double(count);
}

}  // namespace tessera
