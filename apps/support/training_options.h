#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

/// The options that all training programs have.
namespace tessera::apps {

/// An empty text or a negative number leaves the choice to the recipe.
struct TrainingOptions {
  std::string dataset, data, model, recipe, features, split, metric, stop_on;
  int64_t epochs = -1, hidden = -1, layers = -1, patience = -1, runs = 1;
  double lr = -1, dropout = -1, weight_decay = -1;
  std::string schedule;
  int64_t warmup = -1, lr_every = -1, lr_patience = -1;
  double lr_factor = -1, lr_least = -1;
  uint64_t seed = 0;
  int threads = 0;
  std::string device = "cpu";

  std::string checkpoint, json, report, log_dir, save;
  int64_t checkpoint_every = 0;
  bool resume = false, offline = false;
};

/// --data and --offline.
void add_data_folder_options(CLI::App& app, std::string& data, bool& offline);
/// --epochs, the learning rate and its schedule, --weight-decay.
void add_rate_options(CLI::App& app, TrainingOptions& o);
/// --runs and --seed.
void add_run_options(CLI::App& app, TrainingOptions& o);
void add_output_options(CLI::App& app, TrainingOptions& o);
void add_machine_options(CLI::App& app, TrainingOptions& o);

}  // namespace tessera::apps
