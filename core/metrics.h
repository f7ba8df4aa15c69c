#pragma once

#include <cstdint>
#include <vector>

#include "tessera/core/tensor.h"

/// Measures of predictions, in double, on the CPU; nothing is recorded for gradients. Scores and labels are f32 or f64
/// unless said otherwise. Errors: InvalidArgument for shapes, and for values out of range, naming the first.
namespace tessera {

/// Share of the chosen rows whose largest score is at the label, in [0, 1]. scores (N, C) f32 or f64; labels i32 (N);
/// rows i32 (M), undefined: all. Ties go to the lowest class.
/// Errors: InvalidArgument for shapes, no row chosen, a row or a label out of range, naming the first.
double accuracy(const Tensor& scores, const Tensor& labels, const Tensor& rows = {});

/// i64 (C, C): how often a chosen row of label i has its largest score at j. Arguments and errors as `accuracy`.
Tensor confusion_matrix(const Tensor& scores, const Tensor& labels, const Tensor& rows = {});

enum class Average : uint8_t { micro, macro };

/// F1 of single-label classes: from all decisions together (micro, which is the accuracy) or the mean over the classes that
/// occur as label or prediction (macro, as scikit-learn); a class never rightly predicted counts 0.
double f1(const Tensor& scores, const Tensor& labels, Average average, const Tensor& rows = {});

/// F1 of yes-or-no labels: scores (N, T) above `threshold` say yes, labels (N, T) are 0, 1, or NaN for unknown, which is
/// left out. 2 tp / (2 tp + fp + fn), over all entries (micro) or the mean over columns (macro); 0 where that is 0 / 0.
double f1_multilabel(const Tensor& scores, const Tensor& labels, Average average, double threshold = 0);

/// A measure for each column, NaN where it is undefined, and the mean of the defined ones, NaN when there is none.
struct TaskMean {
  double mean;
  int64_t defined;
  std::vector<double> per_task;
};

/// Area under the ROC curve: the chance that a positive scores above a negative, ties counting half. scores (N) or (N, T),
/// labels of that shape: 0, 1, or NaN for unknown, which is left out. A column of one class alone is undefined.
/// Errors: also InvalidArgument for a NaN score.
TaskMean roc_auc(const Tensor& scores, const Tensor& labels);

/// Average precision: sum over the distinct scores, from the top, of (recall gained) * (precision so far). The rest as
/// `roc_auc`.
TaskMean average_precision(const Tensor& scores, const Tensor& labels);

/// sqrt(mean (x - target)^2) and mean |x - target| of each column; a NaN target is left out. A column without any is undefined.
TaskMean rmse(const Tensor& x, const Tensor& target);
TaskMean mae(const Tensor& x, const Tensor& target);

/// Share of the positives that score strictly above the k-th largest negative (OGB's hits@k: ties count as misses).
/// positives (P), negatives (M); 1 when there are fewer than k negatives, as OGB.
/// Errors: InvalidArgument for k < 1, no positive, or a NaN.
double hits_at_k(const Tensor& positives, const Tensor& negatives, int64_t k);

/// Means over the rows of 1 / rank and of rank <= 1, 3, 10.
struct Ranking {
  double mrr, hits_at_1, hits_at_3, hits_at_10;
};

/// Rank of each positive among its own negatives: (#(neg > pos) + #(neg >= pos)) / 2 + 1, as OGB. positives (B),
/// negatives (B, K). Errors: InvalidArgument for no positive, or a NaN.
Ranking ranking(const Tensor& positives, const Tensor& negatives);

}  // namespace tessera
