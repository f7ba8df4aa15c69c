#include "tessera/core/confusion.h"

#include "tessera/core/ops/reduce.h"

namespace tessera {

int64_t Confusion::labelled(int64_t label) const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += count(label, c);
  return sum;
}

int64_t Confusion::predicted(int64_t as) const {
  int64_t sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += count(c, as);
  return sum;
}

int64_t Confusion::total() const {
  int64_t sum = 0;
  for (const int64_t n : counts) sum += n;
  return sum;
}

double Confusion::precision(int64_t c) const {
  const int64_t n = predicted(c);
  return n > 0 ? double(count(c, c)) / double(n) : 0;
}

double Confusion::recall(int64_t c) const {
  const int64_t n = labelled(c);
  return n > 0 ? double(count(c, c)) / double(n) : 0;
}

double Confusion::f1(int64_t c) const {
  const int64_t n = predicted(c) + labelled(c);
  return n > 0 ? 2 * double(count(c, c)) / double(n) : 0;
}

Confusion confusion(const Tensor& scores, const Tensor& labels, const Tensor& rows) {
  check(scores.ndim() == 2, "confusion: scores have shape {} but need two dimensions", scores.shape());
  const int64_t n = scores.dim(0), classes = scores.dim(1);
  check(labels.ndim() == 1 && labels.dim(0) == n && labels.dtype() == DType::i32,
        "confusion: labels are {} {} but need to be i32 [{}]", labels.dtype(), labels.shape(), n);
  check(!rows.defined() || (rows.ndim() == 1 && rows.dtype() == DType::i32),
        "confusion: rows need to be i32 of one dimension");
  Confusion out{classes, std::vector<int64_t>(size_t(classes * classes))};
  if (n == 0) return out;
  const Tensor best = argmax_rows(scores.detach());
  const int32_t* predicted = best.data<int32_t>();
  const int32_t* y = labels.data<int32_t>();
  const int64_t count = rows.defined() ? rows.dim(0) : n;
  for (int64_t c = 0; c < count; ++c) {
    const int64_t i = rows.defined() ? rows.data<int32_t>()[c] : c;
    check(i >= 0 && i < n, "confusion: rows[{}] is {} but needs to be in [0, {})", c, i, n);
    check(y[i] >= 0 && y[i] < classes, "confusion: labels[{}] is {} but needs to be in [0, {})", i, y[i], classes);
    ++out.counts[size_t(y[i] * classes + predicted[i])];
  }
  return out;
}

}  // namespace tessera
