#pragma once

#include <map>
#include <string>
#include <vector>

#include "tessera/apps/support/training_options.h"
#include "tessera/datasets/graph_set/graph_set.h"

/// The options of the programs that work on sets of graphs, and the recipes that set what the flags do not.
namespace tessera::apps {

/// An empty text or a negative number leaves the choice to the recipe.
struct GraphOptions : TrainingOptions {
  int64_t folds = -1, fold_seed = 12345, batch = -1;
  double ratio = -1;
  std::string take, class_weights, grid_choice;
  bool grid = false;
};

void add_graph_data_options(CLI::App& app, GraphOptions& o);
void add_graph_training_options(CLI::App& app, GraphOptions& o);

/// Sets what the flags left open, chooses the set's features as --features says. Errors: UsageError for an option that
/// contradicts another, the model or the set.
void fill_from_recipe(GraphOptions& o, GraphSet& set);

/// What decides the numbers of a run, as "--flag" and value: in the manifest, in checkpoints, in weights.
std::map<std::string, std::string> deciding_options(const GraphOptions& o);

/// One training of the many that a command may ask for: a cell of the grid, a repetition, a fold; numbered in that order.
struct GraphUnit {
  int64_t cell, run, fold;
};
/// Splits in a repetition: the folds, the splits that the files give, or 1.
int64_t folds_of(const GraphOptions& o, const GraphSet& set);
int64_t units_of(const GraphOptions& o, const GraphSet& set);
GraphUnit unit_of(const GraphOptions& o, const GraphSet& set, int64_t unit);
/// "run 2, fold 7, 3 layers of 32": what of it there is more than one of; empty when there is one unit.
std::string name_of_unit(const GraphOptions& o, const GraphSet& set, int64_t unit);

/// The options of a cell of --grid; without it `o`.
GraphOptions options_of_cell(const GraphOptions& o, int64_t cell);
int64_t cells_of(const GraphOptions& o);

/// The split of a unit, as --split says. Errors: UsageError for a split that the set does not have; an empty training part,
/// or an empty validation part where one is needed, with the counts of every class.
GraphSplit split_of_unit(const GraphOptions& o, const GraphSet& set, const GraphUnit& unit);

/// Weights of the classes, or of the yes in each task, of --class-weights over the training part; undefined: all 1.
/// Errors: UsageError for a class without a graph; numbers that do not fit.
Tensor class_weights_of(const GraphOptions& o, const GraphSet& set, const GraphSplit& split);

/// Every split is looked at, before anything is trained. Gives a line for each part where the metric is not defined.
std::vector<std::string> check_splits(const GraphOptions& o, const GraphSet& set);

}  // namespace tessera::apps
