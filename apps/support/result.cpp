#include "tessera/apps/support/result.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tessera/apps/support/metric.h"
#include "tessera/core/io/file.h"
#include "tessera/core/isa.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"

namespace tessera::apps {

Summary::Summary(const std::vector<double>& values) {
  if (values.empty()) return;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    mean += value;
    ++defined;
  }
  mean = defined > 0 ? mean / double(defined) : std::nan("");
  if (defined < 2) return;
  for (const double value : values)
    if (!std::isnan(value)) std += (value - mean) * (value - mean);
  std = std::sqrt(std / double(defined - 1));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + long(half), values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] + *std::max_element(values.begin(), values.begin() + long(half))) / 2;
}

int64_t peak_rss_bytes() {
  // VmHWM counts this program alone; getrusage's figure starts from that of the process that started it.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

void print_result(const TrainingResult& result) {
  const std::string title = metric_title(result.metric);
  const auto show = [&](const char* split, const std::vector<double>& runs) {
    if (runs.empty()) return void(std::printf("%-5s no such %s\n", split, result.items.c_str()));
    const Summary summary(runs);
    if (summary.defined == 0) return void(std::printf("%-5s %s not defined\n", split, title.c_str()));
    std::printf("%-5s %s %8s", split, title.c_str(), metric_text(result.metric, summary.mean).c_str());
    if (runs.size() > 1) {
      const bool folds = result.folds > 1;
      std::string deviation = metric_text(result.metric, summary.std);
      if (deviation.ends_with(" %")) deviation.resize(deviation.size() - 2);
      std::printf(" +- %s over %lld %s", deviation.c_str(), (long long)summary.defined, folds ? "folds" : "runs");
    }
    if (size_t(summary.defined) < runs.size()) std::printf(", not defined in %zu", runs.size() - size_t(summary.defined));
    std::printf("\n");
  };
  show("train", result.train);
  show("valid", result.valid);
  show("test", result.test);
  std::printf("epoch %.3f ms (median)\n", 1e3 * median(result.epoch_seconds));
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void write_result(const std::string& path, const Manifest& manifest, const TrainingResult& result) {
  using nlohmann::ordered_json;
  ordered_json root;
  root["manifest"] = {
      {"version", version()},
      {"command", manifest.command},
      {"recipe", manifest.recipe},
      {"seed", manifest.seed},
      {"threads", threads()},
      {"isa", name(active_isa())},
      {"device", manifest.device},
      {"dataset", manifest.dataset},
      {"data_sha256", manifest.data_sha256},
      {"started", time_text(manifest.started)},
      {"wall_seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - manifest.begun).count()},
      {"peak_rss_bytes", peak_rss_bytes()}};
  if (!manifest.options.empty()) root["manifest"]["options"] = manifest.options;
  ordered_json& body = root["result"];
  body["metric"] = result.metric;
  const auto put = [&](const char* split, const std::vector<double>& runs) {
    if (runs.empty()) return;
    const Summary summary(runs);
    // A number that is not defined is null in JSON.
    body[split] = {{"mean", summary.mean}, {"std", summary.std}, {"runs", runs}};
    if (size_t(summary.defined) < runs.size()) body[split]["undefined"] = runs.size() - size_t(summary.defined);
    if (result.folds == 1 || runs.size() <= size_t(result.folds)) return;
    for (auto fold = runs.begin(); fold != runs.end(); fold += result.folds)
      body[split]["repetitions"].push_back(Summary({fold, fold + result.folds}).mean);
  };
  put("train", result.train);
  put("valid", result.valid);
  put("test", result.test);
  if (result.folds > 1) body["folds"] = result.folds;
  if (!result.valid_loss.empty())
    body["valid_loss"] = {{"mean", Summary(result.valid_loss).mean}, {"runs", result.valid_loss}};
  for (const TrainingResult::Cell& cell : result.grid) {
    const Summary test(cell.test);
    body["grid"].push_back(
        {{"options", cell.options}, {"valid_loss", cell.valid_loss}, {"test", {{"mean", test.mean}, {"std", test.std}}}});
  }
  if (!result.epoch_seconds.empty())
    body["epoch_seconds"] = {{"median", median(result.epoch_seconds)},
                             {"min", *std::min_element(result.epoch_seconds.begin(), result.epoch_seconds.end())}};
  if (!result.epochs.empty()) body["epochs"] = result.epochs;
  if (!result.weights_sha256.empty()) body["weights_sha256"] = result.weights_sha256;
  const std::string text = root.dump(2) + "\n";
  write_atomically(path, text);
}

}  // namespace tessera::apps
