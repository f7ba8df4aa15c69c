#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera::apps {

/// Mean and unbiased standard deviation (0 for one value) of a metric over the runs in which it is defined; NaN when there
/// is none.
struct Summary {
  double mean = 0, std = 0;
  int64_t defined = 0;
  explicit Summary(const std::vector<double>& values);
};

double median(std::vector<double> values);

/// What a training program reports: the JSON of the house has these names.
struct TrainingResult {
  std::string metric, items = "nodes";
  std::vector<double> train, valid, test;   ///< one value a run, shares as fractions; NaN: not defined
  std::vector<double> epoch_seconds;        ///< training steps alone, without evaluation
  std::vector<int64_t> epochs;              ///< of each run, where early stopping makes them differ
  std::vector<std::string> weights_sha256;  ///< of each run's final weights
  int64_t folds = 1;                        ///< of each repetition: so many values in a row belong together
  std::vector<double> valid_loss;           ///< of each run's weights; empty where none was measured
  struct Cell {
    std::map<std::string, std::string> options;
    double valid_loss;
    std::vector<double> test;
  };
  std::vector<Cell> grid;  ///< of a search, all that was tried
};

struct Manifest {
  std::string command, recipe, dataset, data_sha256, device = "cpu";
  uint64_t seed = 0;
  std::map<std::string, std::string> options = {};  ///< every option that decides the numbers, also those of the recipe
  std::chrono::system_clock::time_point started = std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

/// Means and deviations of the three parts and the time of an epoch, for people.
void print_result(const TrainingResult& result);

/// "2026-01-31T12:00:00Z".
std::string time_text(std::chrono::system_clock::time_point time);

/// Largest resident memory of this process so far.
int64_t peak_rss_bytes();

/// Writes `{"manifest": ..., "result": ...}` to `path`, complete or not at all. Errors: IoError.
void write_result(const std::string& path, const Manifest& manifest, const TrainingResult& result);

}  // namespace tessera::apps
