#include "tessera/core/ops/loss.h"

#include <algorithm>

#include "tessera/core/autograd.h"
#include "tessera/core/kernel.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/ops/softmax_kernels.h"

namespace tessera {

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, const Tensor& rows) {
  check(logits.ndim() == 2, "cross_entropy: logits have shape {} but need two dimensions", logits.shape());
  check<Unsupported>(logits.dtype() == DType::f32 || logits.dtype() == DType::f64,
                     "cross_entropy: dtype {} is not supported, use f32 or f64", logits.dtype());
  const int64_t n = logits.dim(0), classes = logits.dim(1);
  check(labels.ndim() == 1 && labels.dim(0) == n && labels.dtype() == DType::i32,
        "cross_entropy: labels are {} {} but need to be i32 [{}]", labels.dtype(), labels.shape(), n);
  if (rows.defined())
    check(rows.ndim() == 1 && rows.dtype() == DType::i32, "cross_entropy: rows are {} {} but need to be i32 of one dimension",
          rows.dtype(), rows.shape());
  const int64_t count = rows.defined() ? rows.dim(0) : n;
  check(count > 0, "cross_entropy: no row is chosen, the mean of no losses is undefined");
  const int32_t* chosen = rows.defined() ? rows.data<int32_t>() : nullptr;
  const int32_t* y = labels.data<int32_t>();
  for (int64_t c = 0; c < count; ++c) {
    const int64_t i = chosen ? chosen[c] : c;
    check(i >= 0 && i < n, "cross_entropy: rows[{}] is {} but needs to be in [0, {})", c, i, n);
    check(y[i] >= 0 && y[i] < classes, "cross_entropy: labels[{}] is {} but needs to be in [0, {})", i, y[i], classes);
  }
  double total = 0;
  CrossEntropyKernel::Args args{logits.dtype() == DType::f64, n, classes, logits.raw(), y, chosen, count, &total, nullptr, 0,
                                nullptr};
  run<CrossEntropyKernel>(logits.device(), args);
  Tensor out = full(Shape{}, total / double(count), logits.dtype());
  record("cross_entropy", out, {logits},
         [logits = Saved(logits), labels = Saved(labels), rows = Saved(rows), count](const Tensor& grad, Gradients& into) {
           const Tensor& x = logits.get();
           Tensor result = Tensor::empty(x.shape(), x.dtype(), x.device());
           Tensor times;
           if (rows.defined()) {
             times = zeros(Shape{x.dim(0)}, DType::i32);
             int32_t* t = times.mutable_data<int32_t>();
             for (const int32_t i : rows.get().span<int32_t>()) ++t[i];
           }
           run<CrossEntropyKernel>(
               x.device(), {x.dtype() == DType::f64, x.dim(0), x.dim(1), x.raw(), labels.get().data<int32_t>(), nullptr, count,
                            nullptr, times.defined() ? times.data<int32_t>() : nullptr, grad.item() / double(count),
                            result.mutable_raw()});
           into.add(0, result);
         });
  return out;
}

}  // namespace tessera
