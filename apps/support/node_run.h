#pragma once

#include "tessera/apps/support/history.h"
#include "tessera/apps/support/learning_rate.h"
#include "tessera/apps/support/node_task.h"
#include "tessera/apps/support/result.h"
#include "tessera/apps/support/state.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/optim/early_stopping.h"

namespace tessera::apps {

/// Everything of one run that training changes.
struct NodeRun {
  int64_t index = 0, epoch = 0;
  NodeSplit split;
  Generator random;
  NodeModel model;
  Adam optimiser;
  EarlyStopping stopping;
  LearningRate rate;
  StateDict best;  ///< copies of the weights at `stopping.best_epoch`; empty without early stopping
  History history;

  NodeRun(const NodeOptions& o, const NodeTask& task, int64_t run);

  /// After the last epoch, or where --patience or --stop-window end it.
  bool finished(const NodeOptions& o) const;
  void keep_best();
  void return_to_best();
  /// Value that early stopping and the plateau schedule watch, of evaluation-mode logits.
  double watched(const NodeOptions& o, double valid_loss, double valid_score) const;
};

/// What the runs before left: results, and the run that is reported and saved, the one with the best validation score
/// (without validation, the first).
struct FinishedRuns {
  TrainingResult result;
  int64_t chosen = -1, chosen_best_epoch = -1;
  double chosen_valid = 0;
  StateDict chosen_weights;
  History chosen_history;

  void add(const NodeRun& run);
};

/// Share of all runs that is done, for the time left. Runs that may stop early are taken to be as long as those before; the
/// first of them tells nothing.
double share_done(const NodeOptions& o, const NodeRun& run, const FinishedRuns& finished);

/// The state as one file in a folder, and back. `load_state` is false when there is no file yet.
/// Errors: UsageError listing every option that the file was made with otherwise; as `load_checkpoint` and `restore`.
std::string checkpoint_path(const std::string& folder);
std::string weights_path(const std::string& folder);  ///< of the weights a run ended with
void save_state(const NodeOptions& o, const NodeTask& task, const NodeRun& run, const FinishedRuns& finished);
int64_t saved_run(const Checkpoint& checkpoint);
void check_same_options(const NodeOptions& o, const NodeTask& task, const Checkpoint& checkpoint);
void load_state(const Checkpoint& checkpoint, NodeRun& run, FinishedRuns& finished);

/// Weights alone under their own names, with all that tessera-predict needs in `__metadata__`.
void save_weights(const std::string& path, const NodeOptions& o, const NodeTask& task, const StateDict& weights);

/// Errors: Error with the epoch when a loss of the run's last epoch, or a weight after it, is not finite: the run diverged,
/// and nothing of it is to be saved.
void check_loss(const NodeOptions& o, const NodeRun& run, const char* which, double loss);
void check_weights(const NodeOptions& o, const NodeRun& run);

}  // namespace tessera::apps
