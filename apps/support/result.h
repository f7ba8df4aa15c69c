#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::apps {

/// Mean and unbiased standard deviation (0 for one value) of a metric over runs.
struct Summary {
  double mean = 0, std = 0;
  explicit Summary(const std::vector<double>& values);
};

double median(std::vector<double> values);

/// What a training program reports: the JSON of the house has these names.
struct TrainingResult {
  std::string metric;
  std::vector<double> train, valid, test;  ///< one value a run, as fractions
  std::vector<double> epoch_seconds;       ///< training steps alone, without evaluation
};

struct Manifest {
  std::string command, recipe, dataset, data_sha256, device = "cpu";
  uint64_t seed = 0;
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

/// Largest resident memory of this process so far.
int64_t peak_rss_bytes();

/// Writes `{"manifest": ..., "result": ...}` to `path`, complete or not at all. Errors: IoError.
void write_result(const std::string& path, const Manifest& manifest, const TrainingResult& result);

}  // namespace tessera::apps
