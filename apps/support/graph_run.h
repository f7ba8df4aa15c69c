#pragma once

#include "tessera/apps/support/graph_model.h"
#include "tessera/apps/support/graph_options.h"
#include "tessera/apps/support/history.h"
#include "tessera/apps/support/learning_rate.h"
#include "tessera/apps/support/result.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/optim/early_stopping.h"

namespace tessera::apps {

/// Mean loss of what is to be told: cross-entropy; binary cross-entropy or squared error of the entries that are known.
/// Undefined when none is. weights: `class_weights_of`.
Tensor loss_of(GraphTask task, const Tensor& logits, const Tensor& y, const Tensor& weights);

/// --metric of logits (G, outputs); NaN where it is not defined.
double score_of(const std::string& metric, GraphTask task, const Tensor& logits, const Tensor& y);

/// Graphs in batches that are made once, for evaluations in every epoch.
struct GraphPart {
  std::vector<GraphSample> batches;
  Tensor y;

  GraphPart() = default;
  GraphPart(const GraphSet& set, const Tensor& ids, int64_t batch);
};

/// Everything of one training that it changes, and its split.
struct GraphRun {
  int64_t index = 0, epoch = 0;
  GraphOptions options;  ///< of its cell
  GraphSplit split;
  Tensor weights;  ///< of the classes
  Generator random;
  GraphModel model;
  Adam optimiser;
  EarlyStopping stopping;
  LearningRate rate;
  StateDict best;  ///< copies of the weights at `stopping.best_epoch`; empty with --take last
  History history;
  GraphPart valid;

  /// Unit `unit`, with draws of its own: they depend on --seed and the unit's run, fold and cell alone.
  GraphRun(const GraphOptions& o, const GraphSet& set, int64_t unit);

  bool finished() const { return epoch >= options.epochs || stopping.stopped(); }
  /// The training graphs in a random order, which the generator's next stream gives.
  std::vector<int32_t> shuffled();
  void keep_best();
  void return_to_best();
  /// Logits of graphs in evaluation mode, without gradients; the model trains on afterwards.
  Tensor logits_of(const GraphPart& part);
  Tensor logits_of(const GraphSet& set, const Tensor& ids);
};

/// The training that is reported and saved.
struct ChosenRun {
  int64_t unit = -1, best_epoch = -1;
  double criterion = 0;  ///< what --stop-on says of its validation graphs, so that less is better
  StateDict weights;
  History history;
};

/// What the units before left.
struct FinishedUnits {
  TrainingResult all;  ///< a value for each unit
  ChosenRun now;       ///< of the grid's present cell, the one that is best by validation (without one, the first)
  ChosenRun best;      ///< of the cells before, that of the best cell

  void add(const GraphOptions& o, const GraphSet& set, GraphRun& run, double valid_loss);
  /// The result without those cells of the grid that were not chosen.
  TrainingResult chosen(const GraphOptions& o, const GraphSet& set) const;
  const ChosenRun& chosen_run() const { return best.unit >= 0 ? best : now; }
};

/// Share of all units that is done, for the time left.
double share_done(const GraphOptions& o, const GraphSet& set, const GraphRun& run, const FinishedUnits& finished);

/// The state as one file in a folder, and back. Errors: UsageError listing every option that the file was made with
/// otherwise; as `load_checkpoint` and `restore`.
void save_state(const GraphOptions& o, const GraphSet& set, const GraphRun& run, const FinishedUnits& finished);
int64_t saved_unit(const GraphOptions& o, const GraphSet& set, const Checkpoint& checkpoint);
void check_same_options(const GraphOptions& o, const GraphSet& set, const Checkpoint& checkpoint);
void load_state(const Checkpoint& checkpoint, GraphRun& run, FinishedUnits& finished);

/// Weights alone under their own names, with all that a program needs to use them in `__metadata__`.
void save_weights(const std::string& path, const GraphOptions& o, const GraphSet& set, const ChosenRun& chosen);

/// Errors: Error with the epoch when a loss of the run's last epoch, or a weight after it, is not finite.
void check_loss(const GraphSet& set, const GraphOptions& o, const GraphRun& run, const char* which, double loss);
void check_weights(const GraphSet& set, const GraphOptions& o, const GraphRun& run);

}  // namespace tessera::apps
