#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/apps/support/training_options.h"
#include "tessera/datasets/graph/node_dataset.h"

/// The options of the programs that work on the nodes of one graph, and the recipes that set what the flags do not.
namespace tessera::apps {

/// An empty text or a negative number leaves the choice to the recipe.
struct NodeOptions : TrainingOptions {
  std::string edges, nodes, id_column, label_column, split_column, component, decay_on;
  bool dataset_given = false;  ///< --dataset stood on the command line

  NodeOptions() {
    dataset = "karate";
    model = "gcn";
    schedule = "none";
  }
};

void add_data_options(CLI::App& app, NodeOptions& o);
void add_training_options(CLI::App& app, NodeOptions& o);

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
