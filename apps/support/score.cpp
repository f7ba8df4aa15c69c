#include "tessera/apps/support/score.h"

#include <algorithm>
#include <cmath>

#include "tessera/apps/support/program.h"
#include "tessera/core/metrics.h"

namespace tessera::apps {

std::string default_metric(const NodeDataset& data) {
  for (const char* name : {"minesweeper", "tolokers", "questions"})
    if (data.name == name && data.num_classes == 2) return "roc-auc";
  return "accuracy";
}

double score_of(const std::string& metric, const Tensor& logits, const Tensor& labels, const Tensor& rows) {
  if (metric == "accuracy") return accuracy(logits, labels, rows);
  const int64_t n = rows.numel();
  if (n == 0) return std::nan("");
  Tensor scores = Tensor::empty({n}, DType::f64), truth = Tensor::empty({n}, DType::f64);
  const float* x = logits.data<float>();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = rows.data<int32_t>()[i];
    scores.mutable_data<double>()[i] = double(x[2 * row + 1]) - double(x[2 * row]);
    truth.mutable_data<double>()[i] = labels.data<int32_t>()[row];
  }
  return roc_auc(scores, truth).mean;
}

std::vector<std::string> check_metric(const NodeOptions& o, const NodeDataset& data) {
  std::vector<std::string> lines;
  if (o.metric != "roc-auc") return lines;
  check<UsageError>(data.num_classes == 2, "--metric roc-auc needs 2 classes but {} has {}", data.name, data.num_classes);
  const bool decides = o.stop_on == "metric" && (o.patience > 0 || o.schedule == "plateau");
  // Runs that take the same given split are alike.
  const bool random = o.split.starts_with("random:");
  const int64_t different = random               ? o.runs
                            : o.split == "given" ? std::min<int64_t>(o.runs, int64_t(data.splits.size()))
                                                 : 1;
  for (int64_t run = 0; run < different; ++run) {
    const NodeSplit split = split_of_run(o, data, run);
    const std::pair<const char*, const Tensor*> parts[] = {
        {"training", &split.train}, {"validation", &split.valid}, {"test", &split.test}};
    for (const auto& [part, rows] : parts) {
      if (rows->numel() == 0) continue;
      const int32_t* labels = data.labels.data<int32_t>();
      const int32_t first = labels[rows->data<int32_t>()[0]];
      bool alone = true;
      for (const int32_t row : rows->span<int32_t>()) alone = alone && labels[row] == first;
      if (!alone) continue;
      const std::string line = "run " + to_text(run) + ": all " + to_text(rows->numel()) + " " + part +
                               " nodes are of class " + to_text(first) + ", so their ROC-AUC is not defined";
      check<UsageError>(!decides || rows != &split.valid, "{}; --stop-on loss would do", line);
      lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace tessera::apps
