// Measures that need an order of scores, and errors of regression, column by column.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/core/metrics.h"
#include "tessera/core/ops/create.h"
#include "tessera/core/parallel.h"

namespace tessera {
namespace {

struct Scored {
  double score, label;
};

/// `measure` of each column's known entries.
template <class F>
TaskMean by_task(const char* op, const Tensor& scores, const Tensor& labels, F measure) {
  check(scores.ndim() == 1 || scores.ndim() == 2, "{}: scores have shape {} but need one or two dimensions", op, scores.shape());
  check(scores.shape() == labels.shape(), "{}: scores have shape {} but labels {}", op, scores.shape(), labels.shape());
  const Tensor x = cast(scores.detach(), DType::f64), y = cast(labels.detach(), DType::f64);
  const double *score = x.data<double>(), *label = y.data<double>();
  const int64_t n = scores.dim(0), tasks = scores.ndim() == 2 ? scores.dim(1) : 1;
  for (int64_t i = 0; i < x.numel(); ++i)
    check(label[i] != label[i] || score[i] == score[i], "{}: the score of row {}, column {} is NaN", op, i / tasks, i % tasks);
  TaskMean out{0, 0, std::vector<double>(static_cast<size_t>(tasks))};
  parallel_for(tasks, 1, [&](int64_t begin, int64_t end) {
    std::vector<Scored> known;
    for (int64_t t = begin; t < end; ++t) {
      known.clear();
      for (int64_t i = 0; i < n; ++i)
        if (label[i * tasks + t] == label[i * tasks + t]) known.push_back({score[i * tasks + t], label[i * tasks + t]});
      out.per_task[size_t(t)] = measure(known);
    }
  });
  for (const double value : out.per_task)
    if (!std::isnan(value)) {
      out.mean += value;
      ++out.defined;
    }
  out.mean = out.defined == 0 ? std::numeric_limits<double>::quiet_NaN() : out.mean / double(out.defined);
  return out;
}

/// The entries with the highest score first, and how many are positive; checks that labels are 0 or 1.
void check_binary(const char* op, const Tensor& labels) {
  const Tensor y = cast(labels.detach(), DType::f64);
  const int64_t tasks = labels.ndim() == 2 ? labels.dim(1) : 1;
  const double* label = y.data<double>();
  for (int64_t i = 0; i < y.numel(); ++i)
    check(label[i] == 0 || label[i] == 1 || label[i] != label[i], "{}: the label of row {}, column {} is {} but needs to be 0, 1 or NaN",
          op, i / tasks, i % tasks, label[i]);
}

/// Calls f(positives, negatives) for each group of equal scores, highest first. False when a class is missing.
template <class F>
bool for_each_score(std::vector<Scored>& known, F f) {
  int64_t positives = 0;
  for (const Scored& s : known) positives += s.label == 1;
  if (positives == 0 || positives == int64_t(known.size())) return false;
  std::sort(known.begin(), known.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  for (size_t i = 0; i < known.size();) {
    int64_t yes = 0, no = 0;
    const double score = known[i].score;
    for (; i < known.size() && known[i].score == score; ++i) ++(known[i].label == 1 ? yes : no);
    f(yes, no);
  }
  return true;
}

void check_no_nan(const char* op, const char* what, const Tensor& x) {
  for (int64_t i = 0; i < x.numel(); ++i)
    check(!std::isnan(x.data<double>()[i]), "{}: {} {} is NaN", op, what, i);
}

}  // namespace

TaskMean roc_auc(const Tensor& scores, const Tensor& labels) {
  check_binary("roc_auc", labels);
  return by_task("roc_auc", scores, labels, [](std::vector<Scored>& known) {
    // Each positive beats the negatives that come after it, and half of those beside it.
    double wins = 0, above = 0, positives = 0;
    const bool defined = for_each_score(known, [&](int64_t yes, int64_t no) {
      wins += double(no) * (above + 0.5 * double(yes));
      above += double(yes);
      positives += double(yes);
    });
    return defined ? wins / (positives * (double(known.size()) - positives)) : std::numeric_limits<double>::quiet_NaN();
  });
}

TaskMean average_precision(const Tensor& scores, const Tensor& labels) {
  check_binary("average_precision", labels);
  return by_task("average_precision", scores, labels, [](std::vector<Scored>& known) {
    double sum = 0, taken = 0, positives = 0;
    const bool defined = for_each_score(known, [&](int64_t yes, int64_t no) {
      taken += double(yes + no);
      positives += double(yes);
      sum += double(yes) * positives / taken;
    });
    return defined ? sum / positives : std::numeric_limits<double>::quiet_NaN();
  });
}

TaskMean rmse(const Tensor& x, const Tensor& target) {
  return by_task("rmse", x, target, [](const std::vector<Scored>& known) {
    double sum = 0;
    for (const Scored& s : known) sum += (s.score - s.label) * (s.score - s.label);
    return std::sqrt(sum / double(known.size()));
  });
}

TaskMean mae(const Tensor& x, const Tensor& target) {
  return by_task("mae", x, target, [](const std::vector<Scored>& known) {
    double sum = 0;
    for (const Scored& s : known) sum += std::fabs(s.score - s.label);
    return sum / double(known.size());
  });
}

double hits_at_k(const Tensor& positives, const Tensor& negatives, int64_t k) {
  check(k >= 1, "hits_at_k: k is {} but needs to be 1 or more", k);
  check(positives.ndim() == 1 && negatives.ndim() == 1 && positives.numel() > 0,
        "hits_at_k: positives have shape {} and negatives {} but need to be [P] with P > 0 and [M]", positives.shape(),
        negatives.shape());
  const Tensor yes = cast(positives.detach(), DType::f64), no = cast(negatives.detach(), DType::f64);
  check_no_nan("hits_at_k", "positive", yes);
  check_no_nan("hits_at_k", "negative", no);
  if (no.numel() < k) return 1;
  std::vector<double> sorted = no.to_vector<double>();
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<double>());
  const double bar = sorted[size_t(k - 1)];
  const std::span<const double> scores = yes.span<double>();
  return double(std::count_if(scores.begin(), scores.end(), [bar](double x) { return x > bar; })) / double(scores.size());
}

Ranking ranking(const Tensor& positives, const Tensor& negatives) {
  check(positives.ndim() == 1 && negatives.ndim() == 2 && positives.numel() > 0 && negatives.dim(0) == positives.dim(0),
        "ranking: positives have shape {} and negatives {} but need to be [B] with B > 0 and [B, K]", positives.shape(),
        negatives.shape());
  const Tensor yes = cast(positives.detach(), DType::f64), no = cast(negatives.detach(), DType::f64);
  check_no_nan("ranking", "positive", yes);
  check_no_nan("ranking", "negative", no);
  const int64_t rows = yes.numel(), width = no.dim(1);
  Ranking out{};
  for (int64_t i = 0; i < rows; ++i) {
    const double x = yes.data<double>()[i];
    const double* row = no.data<double>() + i * width;
    int64_t above = 0, at_least = 0;
    for (int64_t j = 0; j < width; ++j) {
      above += row[j] > x;
      at_least += row[j] >= x;
    }
    const double rank = 0.5 * double(above + at_least) + 1;
    out.mrr += 1 / rank;
    out.hits_at_1 += rank <= 1;
    out.hits_at_3 += rank <= 3;
    out.hits_at_10 += rank <= 10;
  }
  for (double* value : {&out.mrr, &out.hits_at_1, &out.hits_at_3, &out.hits_at_10}) *value /= double(rows);
  return out;
}

}  // namespace tessera
