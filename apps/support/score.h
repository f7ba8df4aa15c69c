#pragma once

#include <string>

#include "tessera/apps/support/metric.h"
#include "tessera/apps/support/node_options.h"

namespace tessera::apps {

/// The metric of a data set when none was asked for: roc-auc for minesweeper, tolokers and questions, as their authors
/// (Platonov et al. 2023) measure them, else accuracy.
std::string default_metric(const NodeDataset& data);

/// --metric of the nodes `rows`, a fraction; NaN where it is not defined. logits (N, classes). ROC-AUC takes the second
/// class for the positive one and the difference of the two logits for its score.
double score_of(const std::string& metric, const Tensor& logits, const Tensor& labels, const Tensor& rows);

/// For ROC-AUC, before anything is trained: two classes, and what is stopped on must be defined in every run.
/// Errors: UsageError. Gives a line for each part of a run that has one class alone; accuracy gives none.
std::vector<std::string> check_metric(const NodeOptions& o, const NodeDataset& data);

}  // namespace tessera::apps
