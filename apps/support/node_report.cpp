#include "tessera/apps/support/node_report.h"

#include <cmath>
#include <cstdio>

#include "tessera/apps/support/progress.h"
#include "tessera/apps/support/report.h"
#include "tessera/apps/support/score.h"
#include "tessera/core/autograd.h"
#include "tessera/core/isa.h"
#include "tessera/core/metrics.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"

namespace tessera::apps {
namespace {

std::string percent(double share, int digits = 2) {
  if (std::isnan(share)) return "not defined";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, 100 * share);
  return text;
}

Report::Fact fact_of(const std::string& label, const std::vector<double>& runs) {
  if (runs.empty()) return {label, "-", "no such nodes"};
  const Summary summary(runs);
  const size_t undefined = runs.size() - size_t(summary.defined);
  if (summary.defined == 0) return {label, "-", "not defined: one class alone"};
  return {label, percent(summary.mean),
          runs.size() == 1 ? ""
                           : "± " + percent(summary.std) + " over " + to_text(summary.defined) + " runs" +
                                 (undefined > 0 ? ", not defined in " + to_text(undefined) : "")};
}

}  // namespace

std::string node_report(const NodeOptions& o, const NodeTask& task, const FinishedRuns& finished, const Manifest& manifest) {
  NodeRun chosen(o, task, finished.chosen);
  load_state_dict(chosen.model, finished.chosen_weights);
  eval(chosen.model);
  const NoGrad off;
  const NodeSplit& split = chosen.split;
  const TrainingResult& result = finished.result;
  const History& history = finished.chosen_history;
  const bool several = result.train.size() > 1, validated = split.valid.numel() > 0;
  const std::string run = several ? "run " + to_text(finished.chosen) : "";

  const std::string metric = metric_title(o.metric);
  Report r{.title = "Node classification: " + task.data.name, .subtitle = describe(task.data)};
  if (several) r.subtitle += "; shown is " + run + (validated ? ", the best by validation" : "");
  r.facts.push_back(fact_of("test " + metric, result.test));
  r.facts.push_back(fact_of("validation " + metric, result.valid));
  r.facts.push_back(fact_of("training " + metric, result.train));
  r.facts.push_back({"nodes",
                     to_text(split.train.numel()) + "/" + to_text(split.valid.numel()) + "/" + to_text(split.test.numel()),
                     "training / validation / test"});
  char epoch[32];
  std::snprintf(epoch, sizeof epoch, "%.3g ms", 1e3 * median(result.epoch_seconds));
  r.facts.push_back({"epoch", epoch, "median, training step alone"});

  const double marked = finished.chosen_best_epoch >= 0 ? double(finished.chosen_best_epoch) : -1;
  const std::string suffix = run.empty() ? "" : " (" + run + ")";
  Chart loss{
      "Loss" + suffix, {{"training (with dropout)", "train", history.train_loss}}, false, marked, "weights taken here"};
  Chart score{(o.metric == "accuracy" ? "Accuracy" : metric) + suffix,
              {{"training", "train", history.train_score}},
              true,
              marked,
              "weights taken here"};
  if (validated) {
    loss.series.push_back({"validation", "valid", history.valid_loss});
    score.series.push_back({"validation", "valid", history.valid_score});
  }
  r.charts = {loss, score};

  r.confusion_title = std::string(split.test.numel() > 0 ? "Test" : "Training") + " nodes: label and prediction" + suffix;
  r.confusion = confusion_matrix(logits_of(chosen.model, task, chosen.random), task.data.labels,
                                 split.test.numel() > 0 ? split.test : split.train);
  r.class_names = task.class_names;
  if (several) {
    r.runs = {"Runs", {"run", "seed", "epochs", "training", "validation", "test"}, {}};
    const auto cell = [](const std::vector<double>& values, size_t i) {
      return i < values.size() ? percent(values[i]) : "-";
    };
    for (size_t i = 0; i < result.train.size(); ++i)
      r.runs.rows.push_back({to_text(i) + (int64_t(i) == finished.chosen ? " (shown)" : ""), to_text(o.seed + i),
                             i < result.epochs.size() ? to_text(result.epochs[i]) : "-", cell(result.train, i),
                             cell(result.valid, i), cell(result.test, i)});
  }
  r.command = manifest.command;
  r.manifest = {{"recipe", manifest.recipe}, {"started", time_text(manifest.started)}};
  for (const auto& [flag, value] : manifest.options) r.manifest.emplace_back(flag, value);
  r.manifest.insert(
      r.manifest.end(),
      {{"data sha256", manifest.data_sha256},
       {"weights sha256", finished.chosen >= 0 ? result.weights_sha256[size_t(finished.chosen)] : ""},
       {"tessera", version()},
       {"machine", manifest.device + ", " + name(active_isa()) + ", " + to_text(threads()) + " threads"},
       {"peak memory", to_text(peak_rss_bytes() >> 20) + " MiB"},
       {"wall time",
        duration_text(std::chrono::duration<double>(std::chrono::steady_clock::now() - manifest.begun).count())}});
  return html_of(r);
}

}  // namespace tessera::apps
