#include "tessera/core/metrics.h"

#include <algorithm>

#include "tessera/core/ops/create.h"
#include "tessera/core/ops/reduce.h"

namespace tessera {
namespace {

/// Calls f(label, predicted class) for each chosen row.
template <class F>
void for_each_decision(const char* op, const Tensor& scores, const Tensor& labels, const Tensor& rows, F f) {
  check(scores.ndim() == 2, "{}: scores have shape {} but need two dimensions", op, scores.shape());
  const int64_t n = scores.dim(0), classes = scores.dim(1);
  check(labels.ndim() == 1 && labels.dim(0) == n && labels.dtype() == DType::i32,
        "{}: labels are {} {} but need to be i32 [{}]", op, labels.dtype(), labels.shape(), n);
  if (rows.defined())
    check(rows.ndim() == 1 && rows.dtype() == DType::i32, "{}: rows are {} {} but need to be i32 of one dimension", op,
          rows.dtype(), rows.shape());
  const int64_t count = rows.defined() ? rows.dim(0) : n;
  check(count > 0, "{}: no row is chosen, the share of no rows is undefined", op);
  const Tensor best = argmax_rows(scores.detach());
  const int32_t* predicted = best.data<int32_t>();
  const int32_t* y = labels.data<int32_t>();
  const int32_t* chosen = rows.defined() ? rows.data<int32_t>() : nullptr;
  for (int64_t c = 0; c < count; ++c) {
    const int64_t i = chosen ? chosen[c] : c;
    check(i >= 0 && i < n, "{}: rows[{}] is {} but needs to be in [0, {})", op, c, i, n);
    check(y[i] >= 0 && y[i] < classes, "{}: labels[{}] is {} but needs to be in [0, {})", op, i, y[i], classes);
    f(y[i], predicted[i]);
  }
}

/// Decisions of one class or column.
struct Counts {
  int64_t right = 0, wrong_yes = 0, wrong_no = 0;

  double f1() const {
    const int64_t all = 2 * right + wrong_yes + wrong_no;
    return all == 0 ? 0 : 2 * double(right) / double(all);
  }
  void operator+=(const Counts& other) {
    right += other.right;
    wrong_yes += other.wrong_yes;
    wrong_no += other.wrong_no;
  }
};

}  // namespace

double accuracy(const Tensor& scores, const Tensor& labels, const Tensor& rows) {
  int64_t right = 0, count = 0;
  for_each_decision("accuracy", scores, labels, rows, [&](int32_t label, int32_t predicted) {
    right += label == predicted;
    ++count;
  });
  return double(right) / double(count);
}

Tensor confusion_matrix(const Tensor& scores, const Tensor& labels, const Tensor& rows) {
  const int64_t classes = scores.ndim() == 2 ? scores.dim(1) : 0;
  Tensor out = zeros(Shape{classes, classes}, DType::i64);
  int64_t* counts = out.mutable_data<int64_t>();
  for_each_decision("confusion_matrix", scores, labels, rows,
                    [&](int32_t label, int32_t predicted) { ++counts[label * classes + predicted]; });
  return out;
}

double f1(const Tensor& scores, const Tensor& labels, Average average, const Tensor& rows) {
  std::vector<Counts> counts(size_t(scores.ndim() == 2 ? scores.dim(1) : 0));
  for_each_decision("f1", scores, labels, rows, [&](int32_t label, int32_t predicted) {
    if (label == predicted) {
      ++counts[size_t(label)].right;
    } else {
      ++counts[size_t(label)].wrong_no;
      ++counts[size_t(predicted)].wrong_yes;
    }
  });
  Counts all;
  double sum = 0;
  int64_t seen = 0;
  for (const Counts& c : counts) {
    all += c;
    sum += c.f1();
    seen += c.right + c.wrong_no + c.wrong_yes > 0;
  }
  return average == Average::micro ? all.f1() : sum / double(seen);
}

double f1_multilabel(const Tensor& scores, const Tensor& labels, Average average, double threshold) {
  check(scores.ndim() == 2 && labels.shape() == scores.shape(),
        "f1_multilabel: scores have shape {} and labels {} but both need to be the same [N, T]", scores.shape(), labels.shape());
  const Tensor x = cast(scores.detach(), DType::f64), y = cast(labels.detach(), DType::f64);
  const int64_t tasks = scores.dim(1);
  check(tasks > 0, "f1_multilabel: scores have shape {}, the mean over no columns is undefined", scores.shape());
  const double *score = x.data<double>(), *label = y.data<double>();
  std::vector<Counts> counts(static_cast<size_t>(tasks));
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (label[i] != label[i]) continue;
    check(label[i] == 0 || label[i] == 1, "f1_multilabel: labels[{}, {}] is {} but needs to be 0, 1 or NaN", i / tasks, i % tasks,
          label[i]);
    Counts& c = counts[size_t(i % tasks)];
    const bool yes = score[i] > threshold;
    if (yes)
      ++(label[i] == 1 ? c.right : c.wrong_yes);
    else if (label[i] == 1)
      ++c.wrong_no;
  }
  Counts all;
  double sum = 0;
  for (const Counts& c : counts) {
    all += c;
    sum += c.f1();
  }
  return average == Average::micro ? all.f1() : sum / double(tasks);
}

}  // namespace tessera
