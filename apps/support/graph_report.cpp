#include "tessera/apps/support/graph_report.h"

#include <cmath>
#include <cstdio>

#include "tessera/apps/support/metric.h"
#include "tessera/apps/support/progress.h"
#include "tessera/apps/support/report.h"
#include "tessera/core/isa.h"
#include "tessera/core/metrics.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"

namespace tessera::apps {
namespace {

Report::Fact fact_of(const std::string& label, const std::string& metric, const std::vector<double>& runs) {
  if (runs.empty()) return {label, "-", "no such graphs"};
  const Summary summary(runs);
  if (summary.defined == 0) return {label, "-", "not defined"};
  return {
      label, metric_text(metric, summary.mean),
      runs.size() == 1 ? "" : "± " + metric_text(metric, summary.std) + " over " + to_text(summary.defined) + " trainings"};
}

}  // namespace

std::string graph_report(const GraphOptions& o, const GraphSet& set, const FinishedUnits& finished,
                         const Manifest& manifest) {
  const ChosenRun& chosen = finished.chosen_run();
  GraphRun run(o, set, chosen.unit);
  load_state_dict(run.model, chosen.weights);
  const TrainingResult result = finished.chosen(o, set);
  const History& history = chosen.history;
  const GraphSplit& split = run.split;
  const bool several = units_of(o, set) > 1, validated = split.valid.numel() > 0;
  const std::string name = name_of_unit(o, set, chosen.unit), suffix = name.empty() ? "" : " (" + name + ")";

  const std::string metric = metric_title(o.metric);
  Report r{.title = "Sets of graphs: " + set.name, .subtitle = describe(set)};
  if (several) r.subtitle += "; shown is " + name + (validated ? ", the best by validation" : "");
  r.facts.push_back(fact_of("test " + metric, o.metric, result.test));
  r.facts.push_back(fact_of("validation " + metric, o.metric, result.valid));
  r.facts.push_back(fact_of("training " + metric, o.metric, result.train));
  r.facts.push_back({"graphs",
                     to_text(split.train.numel()) + "/" + to_text(split.valid.numel()) + "/" + to_text(split.test.numel()),
                     "training / validation / test"});
  char epoch[32];
  std::snprintf(epoch, sizeof epoch, "%.3g ms", 1e3 * median(result.epoch_seconds));
  r.facts.push_back({"epoch", epoch, "median, training steps alone"});

  const double marked = chosen.best_epoch >= 0 ? double(chosen.best_epoch) : -1;
  Chart loss{
      "Loss" + suffix, {{"training (with dropout)", "train", history.train_loss}}, false, marked, "weights taken here"};
  Chart score{(o.metric == "accuracy" ? "Accuracy" : metric) + suffix,
              {{"training", "train", history.train_score}},
              is_share(o.metric),
              marked,
              "weights taken here"};
  if (validated) {
    loss.series.push_back({"validation", "valid", history.valid_loss});
    score.series.push_back({"validation", "valid", history.valid_score});
  }
  r.charts = {loss, score};

  if (set.task == GraphTask::classes) {
    const bool test = split.test.numel() > 0;
    const Tensor& ids = test ? split.test : split.train;
    Tensor labels = Tensor::empty({ids.numel()}, DType::i32);
    for (int64_t i = 0; i < ids.numel(); ++i)
      labels.mutable_data<int32_t>()[i] = set.y.data<int32_t>()[ids.data<int32_t>()[i]];
    r.confusion_title = std::string(test ? "Test" : "Training") + " graphs: label and prediction" + suffix;
    r.confusion = confusion_matrix(run.logits_of(set, ids), labels);
    r.class_names = set.class_names;
  }
  if (o.grid) {
    r.runs = {"Grid", {"layers", "hidden", "validation loss", "test"}, {}};
    for (const TrainingResult::Cell& cell : result.grid) {
      char text[32];
      std::snprintf(text, sizeof text, "%.4f", cell.valid_loss);
      const Summary test(cell.test);
      r.runs.rows.push_back({cell.options.at("--layers"), cell.options.at("--hidden"), text,
                             metric_text(o.metric, test.mean) + " ± " + metric_text(o.metric, test.std)});
    }
  } else if (several) {
    r.runs = {"Trainings", {"", "epochs", "training", "validation", "test"}, {}};
    const auto cell = [&](const std::vector<double>& values, size_t i) {
      return i < values.size() ? metric_text(o.metric, values[i]) : "-";
    };
    for (size_t i = 0; i < result.epochs.size(); ++i)
      r.runs.rows.push_back({name_of_unit(o, set, int64_t(i)) + (int64_t(i) == chosen.unit ? " (shown)" : ""),
                             to_text(result.epochs[i]), cell(result.train, i), cell(result.valid, i), cell(result.test, i)});
  }
  r.command = manifest.command;
  r.manifest = {{"recipe", manifest.recipe}, {"started", time_text(manifest.started)}};
  for (const auto& [flag, value] : manifest.options) r.manifest.emplace_back(flag, value);
  r.manifest.insert(
      r.manifest.end(),
      {{"data sha256", manifest.data_sha256},
       {"weights sha256", finished.all.weights_sha256[size_t(chosen.unit)]},
       {"tessera", version()},
       {"machine", manifest.device + ", " + tessera::name(active_isa()) + ", " + to_text(threads()) + " threads"},
       {"peak memory", to_text(peak_rss_bytes() >> 20) + " MiB"},
       {"wall time",
        duration_text(std::chrono::duration<double>(std::chrono::steady_clock::now() - manifest.begun).count())}});
  return html_of(r);
}

}  // namespace tessera::apps
