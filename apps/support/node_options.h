#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/apps/support/training_options.h"
#include "tessera/datasets/graph/node_dataset.h"

/// The options of the programs that work on the nodes of one graph, and the recipes that set what the flags do not.
namespace tessera::apps {

/// An empty text or a negative number leaves the choice to the recipe.
struct NodeOptions : TrainingOptions {
  std::string edges, nodes, id_column, label_column, split_column, component, decay_on, norm;
  int64_t heads = -1, out_heads = -1, hops = -1, stop_window = -1;
  double input_dropout = -1, alpha = -1, theta = -1;
  bool dataset_given = false;  ///< --dataset stood on the command line

  NodeOptions() {
    dataset = "karate";
    model = "gcn";
    schedule = "none";
  }
};

void add_data_options(CLI::App& app, NodeOptions& o);
void add_training_options(CLI::App& app, NodeOptions& o);

/// An option of a model or of training by its flag, as text.
struct NodeFlag {
  const char* name;
  std::variant<int64_t NodeOptions::*, double NodeOptions::*, std::string NodeOptions::*> member;

  bool open(const NodeOptions& o) const;  ///< left to the recipe
  std::string text(const NodeOptions& o) const;
  /// False for text that is no such value.
  bool set(NodeOptions& o, const std::string& text) const;
};
/// Errors: InternalError for a flag that is not in the table.
const NodeFlag& node_flag(std::string_view name);

/// Errors: UsageError for an option that is set and that --model does not have.
void check_model_options(const NodeOptions& o);

/// Whether a run keeps the weights of its best epoch, and may end before --epochs.
inline bool keeps_best(const NodeOptions& o) { return o.patience > 0 || o.stop_window > 0; }

/// The recipe of a data set when none was asked for: kipf for the citation sets and the karate club, shchur for other known
/// sets without a split, plain for everything else.
std::string default_recipe(const std::string& dataset_name, const NodeDataset& data);

/// Sets what the flags left open. Errors: UsageError for an option that contradicts another or has a value that cannot be
/// read, or that the model does not have.
void fill_from_recipe(NodeOptions& o, const NodeDataset& data);

/// What decides the numbers of a run, as "--flag" and value: in the manifest, in checkpoints, in weights.
std::map<std::string, std::string> deciding_options(const NodeOptions& o);

/// Splits of run `run`: as --split says. Errors: UsageError for a split that the data set does not have; an empty training
/// part, or an empty validation part with early stopping, with the counts of every class.
NodeSplit split_of_run(const NodeOptions& o, const NodeDataset& data, int64_t run);

}  // namespace tessera::apps
