#include "tessera/apps/support/metric.h"

#include <cmath>
#include <cstdio>

namespace tessera::apps {

std::string metric_title(const std::string& metric) {
  if (metric == "roc-auc") return "ROC-AUC";
  if (metric == "ap") return "average precision";
  if (metric == "rmse") return "RMSE";
  if (metric == "mae") return "MAE";
  return metric;
}

bool is_share(const std::string& metric) { return metric != "rmse" && metric != "mae"; }

bool larger_is_better(const std::string& metric) { return is_share(metric); }

std::string metric_text(const std::string& metric, double value) {
  if (std::isnan(value)) return "not defined";
  char text[32];
  if (is_share(metric))
    std::snprintf(text, sizeof text, "%.2f %%", 100 * value);
  else
    std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace tessera::apps
