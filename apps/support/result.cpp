#include "tessera/apps/support/result.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include <nlohmann/json.hpp>

#include "tessera/core/io/file.h"
#include "tessera/core/isa.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"

namespace tessera::apps {

Summary::Summary(const std::vector<double>& values) {
  if (values.empty()) return;
  for (const double value : values) mean += value;
  mean /= double(values.size());
  if (values.size() < 2) return;
  for (const double value : values) std += (value - mean) * (value - mean);
  std = std::sqrt(std / double(values.size() - 1));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + long(half), values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] + *std::max_element(values.begin(), values.begin() + long(half))) / 2;
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) * 1024;
}

void write_result(const std::string& path, const Manifest& manifest, const TrainingResult& result) {
  using nlohmann::ordered_json;
  char started[32];
  const std::time_t time = std::chrono::system_clock::to_time_t(manifest.started);
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
  ordered_json root;
  root["manifest"] = {{"version", version()},
                      {"command", manifest.command},
                      {"recipe", manifest.recipe},
                      {"seed", manifest.seed},
                      {"threads", threads()},
                      {"isa", name(active_isa())},
                      {"device", manifest.device},
                      {"dataset", manifest.dataset},
                      {"data_sha256", manifest.data_sha256},
                      {"started", started},
                      {"wall_seconds",
                       std::chrono::duration<double>(std::chrono::steady_clock::now() - manifest.begun).count()},
                      {"peak_rss_bytes", peak_rss_bytes()}};
  ordered_json& body = root["result"];
  body["metric"] = result.metric;
  const auto put = [&](const char* split, const std::vector<double>& runs) {
    if (runs.empty()) return;
    const Summary summary(runs);
    body[split] = {{"mean", summary.mean}, {"std", summary.std}, {"runs", runs}};
  };
  put("train", result.train);
  put("valid", result.valid);
  put("test", result.test);
  if (!result.epoch_seconds.empty())
    body["epoch_seconds"] = {{"median", median(result.epoch_seconds)},
                             {"min", *std::min_element(result.epoch_seconds.begin(), result.epoch_seconds.end())}};
  const std::string text = root.dump(2) + "\n";
  write_atomically(path, text);
}

}  // namespace tessera::apps
