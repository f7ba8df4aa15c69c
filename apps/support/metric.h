#pragma once

#include <string>

/// What results are measured with, by the names of --metric.
namespace tessera::apps {

/// "accuracy", "ROC-AUC", "average precision", "RMSE", "MAE": for people.
std::string metric_title(const std::string& metric);

/// Whether it is a share, shown in percent; else a number in the units of what is measured.
bool is_share(const std::string& metric);

/// Whether more is better.
bool larger_is_better(const std::string& metric);

/// "81.20 %", "1.114", or "not defined" for NaN.
std::string metric_text(const std::string& metric, double value);

}  // namespace tessera::apps
