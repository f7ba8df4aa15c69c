#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/datasets/graph/node_dataset.h"

namespace CLI {
class App;
}

/// The options of the programs that work on the nodes of one graph, and the recipes that set what the flags do not.
namespace tessera::apps {

/// An empty text or a negative number leaves the choice to the recipe.
struct NodeOptions {
  std::string dataset = "karate", data, edges, nodes, id_column, label_column, split_column;
  std::string model = "gcn", recipe, features, component, split, metric, stop_on, decay_on;
  int64_t epochs = -1, hidden = -1, layers = -1, patience = -1, runs = 1;
  double lr = -1, dropout = -1, weight_decay = -1;
  std::string schedule = "none";
  int64_t warmup = -1, lr_every = -1, lr_patience = -1;
  double lr_factor = -1, lr_least = -1;
  uint64_t seed = 0;
  int threads = 0;
  std::string device = "cpu";

  std::string checkpoint, json, report, log_dir, save;
  int64_t checkpoint_every = 0;
  bool resume = false, offline = false;
  bool dataset_given = false;  ///< --dataset stood on the command line
};

/// --data and --offline.
void add_data_folder_options(CLI::App& app, std::string& data, bool& offline);
void add_data_options(CLI::App& app, NodeOptions& o);
void add_training_options(CLI::App& app, NodeOptions& o);
void add_output_options(CLI::App& app, NodeOptions& o);
void add_machine_options(CLI::App& app, NodeOptions& o);

/// The recipe of a data set when none was asked for: kipf for the citation sets and the karate club, shchur for other known
/// sets without a split, plain for everything else.
std::string default_recipe(const std::string& dataset_name, const NodeDataset& data);

/// Sets what the flags left open. Errors: UsageError for an option that contradicts another or has a value that cannot be
/// read.
void fill_from_recipe(NodeOptions& o, const NodeDataset& data);

/// What decides the numbers of a run, as "--flag" and value: in the manifest, in checkpoints, in weights.
std::map<std::string, std::string> deciding_options(const NodeOptions& o);

/// Splits of run `run`: as --split says. Errors: UsageError for a split that the data set does not have; an empty training
/// part, or an empty validation part with early stopping, with the counts of every class.
NodeSplit split_of_run(const NodeOptions& o, const NodeDataset& data, int64_t run);

}  // namespace tessera::apps
