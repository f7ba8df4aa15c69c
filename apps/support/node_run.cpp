#include "tessera/apps/support/node_run.h"

#include <algorithm>
#include <cmath>

#include "tessera/apps/support/program.h"
#include "tessera/core/isa.h"
#include "tessera/core/printable.h"
#include "tessera/core/version.h"

namespace tessera::apps {
namespace {

/// What the penalty is on: all parameters, those of the first layer, or its weights alone.
bool decays(const NodeOptions& o, const std::string& name) {
  if (o.decay_on == "all") return true;
  return in_first_layer(o, name) && (o.decay_on != "first-weight" || name.ends_with("weight"));
}

Adam make_optimiser(const NodeOptions& o, NodeModel& model) {
  Adam::Group with{{}, o.weight_decay}, without{{}, 0.0};
  for (const auto& [name, tensor] : named_parameters(model))
    if (tensor.requires_grad()) (decays(o, name) ? with : without).parameters.push_back(tensor);
  std::vector<Adam::Group> groups;
  for (Adam::Group* group : {&with, &without})
    if (!group->parameters.empty()) groups.push_back(std::move(*group));
  return Adam(std::move(groups), {.lr = o.lr});
}

double squared_norm(const Tensor& x) {
  double sum = 0;
  for (const float value : x.span<float>()) sum += double(value) * value;
  return sum;
}

}  // namespace

NodeRun::NodeRun(const NodeOptions& o, const NodeTask& task, int64_t run)
    : index(run),
      split(split_of_run(o, task.data, run)),
      random(o.seed + uint64_t(run)),
      model(o, task.data.num_features, task.data.num_classes, random),
      optimiser(make_optimiser(o, model)),
      stopping{.patience = o.patience, .larger_is_better = o.stop_on == "metric"},
      rate(o) {}

bool NodeRun::finished(const NodeOptions& o) const {
  if (epoch >= o.epochs || stopping.stopped()) return true;
  const std::vector<double>& losses = history.valid_loss;
  if (o.stop_window <= 0 || epoch <= o.epochs / 2 || losses.size() < 2) return false;
  const size_t last = losses.size() - 1, first = last - std::min(last, size_t(o.stop_window));
  double mean = 0;
  for (size_t i = first; i < last; ++i) mean += losses[i] / double(last - first);
  return losses[last] > mean;
}

void NodeRun::keep_best() {
  const StateDict now = state_dict(model);
  if (best.empty())
    best = copies_of(now);
  else
    copy_state(now, {best.begin(), best.end()});
}

void NodeRun::return_to_best() {
  if (!best.empty()) load_state_dict(model, best);
}

double NodeRun::watched(const NodeOptions& o, double valid_loss, double valid_score) const {
  if (o.stop_on == "metric") return valid_score;
  if (o.stop_on == "loss") return valid_loss;
  double penalty = 0;
  for_each_parameter(model, [&](const std::string& name, const Tensor& tensor) {
    if (tensor.requires_grad() && decays(o, name)) penalty += squared_norm(tensor);
  });
  return valid_loss + o.weight_decay / 2 * penalty;
}

void FinishedRuns::add(const NodeRun& run) {
  const double valid = result.valid.empty() ? 0 : result.valid.back();  // NaN is never better
  const StateDict weights = state_dict(run.model);
  result.weights_sha256.push_back(digest_of(weights));
  result.epochs.push_back(run.history.epochs());
  if (chosen >= 0 && !(valid > chosen_valid || (std::isnan(chosen_valid) && !std::isnan(valid)))) return;
  chosen = run.index;
  chosen_valid = valid;
  chosen_best_epoch = run.stopping.best_epoch;
  chosen_weights = copies_of(weights);
  chosen_history = run.history;
}

double share_done(const NodeOptions& o, const NodeRun& run, const FinishedRuns& finished) {
  double epochs = double(o.epochs);
  if (keeps_best(o)) {
    if (finished.result.epochs.empty()) return 0;
    epochs = 0;
    for (const int64_t n : finished.result.epochs) epochs += double(n) / double(finished.result.epochs.size());
  }
  return (double(run.index) + std::min(0.95, double(run.epoch) / epochs)) / double(o.runs);
}

std::string checkpoint_path(const std::string& folder) { return folder + "/checkpoint.safetensors"; }

std::string weights_path(const std::string& folder) { return folder + "/model.safetensors"; }

void save_state(const NodeOptions& o, const NodeTask& task, const NodeRun& run, const FinishedRuns& finished) {
  Checkpoint c;
  c.put("model", state_dict(run.model));
  c.put("optimiser", run.optimiser.state());
  c.put("best", run.best);
  c.put("history", run.history.state());
  c.put_generator("generator", run.random);
  c.put_integer("run", run.index);
  c.put_integer("epoch", run.epoch);
  c.put_number("lr", o.lr);
  c.put_number("stopping.best", run.stopping.best);
  c.put_integer("stopping.best_epoch", run.stopping.best_epoch);
  c.put_integer("stopping.waited", run.stopping.waited);
  run.rate.put(c);

  const TrainingResult& r = finished.result;
  c.put("finished", {{"train", to_tensor(r.train)},
                     {"valid", to_tensor(r.valid)},
                     {"test", to_tensor(r.test)},
                     {"epoch_seconds", to_tensor(r.epoch_seconds)},
                     {"epochs", to_tensor({r.epochs.begin(), r.epochs.end()})}});
  for (size_t i = 0; i < r.weights_sha256.size(); ++i)
    c.put_text("finished.weights_sha256." + std::to_string(i), r.weights_sha256[i]);
  c.put_integer("chosen", finished.chosen);
  c.put_integer("chosen.best_epoch", finished.chosen_best_epoch);
  c.put_number("chosen.valid", finished.chosen_valid);
  c.put("chosen", finished.chosen_weights);
  c.put("chosen_history", finished.chosen_history.state());

  for (const auto& [flag, value] : deciding_options(o)) c.put_text("option." + flag, value);
  c.put_text("data_sha256", task.data.sha256);
  c.put_text("isa", name(active_isa()));
  c.put_text("version", version());
  save_checkpoint(checkpoint_path(o.checkpoint), c);
}

int64_t saved_run(const Checkpoint& checkpoint) {
  const int64_t run = checkpoint.integer("run");
  check(run >= 0 && run < 100000, "checkpoint: run is {} but needs to be in [0, 100000)", run);
  return run;
}

void check_same_options(const NodeOptions& o, const NodeTask& task, const Checkpoint& checkpoint) {
  std::string differences;
  for (const auto& [flag, value] : deciding_options(o)) {
    const std::string saved = checkpoint.has("option." + flag) ? checkpoint.text("option." + flag) : "not set";
    // A single run may go on for longer than was planned, unless the plan decided the learning rates of before.
    if (flag == "--epochs" && o.schedule != "cosine" && checkpoint.integer("run") == 0 &&
        checkpoint.integer("option.--epochs") <= o.epochs)
      continue;
    if (saved != value)
      differences += (differences.empty() ? "" : ", ") + flag + " " + value + " (was " + printable(saved) + ")";
  }
  if (checkpoint.text("data_sha256") != task.data.sha256)
    differences += std::string(differences.empty() ? "" : ", ") + "the data files";
  check<UsageError>(differences.empty(),
                    "{}: was made with other options: {}; give the same, or another --checkpoint folder",
                    checkpoint_path(o.checkpoint), differences);
}

void load_state(const Checkpoint& c, NodeRun& run, FinishedRuns& finished) {
  History history = History::from(c.part("history"));
  FinishedRuns before;
  const StateDict numbers = c.part("finished");
  before.result = {.metric = finished.result.metric,
                   .train = numbers_of(numbers, "train"),
                   .valid = numbers_of(numbers, "valid"),
                   .test = numbers_of(numbers, "test"),
                   .epoch_seconds = numbers_of(numbers, "epoch_seconds")};
  for (const double epochs : numbers_of(numbers, "epochs")) before.result.epochs.push_back(int64_t(epochs));
  for (int64_t i = 0; i < run.index; ++i)
    before.result.weights_sha256.push_back(c.text("finished.weights_sha256." + std::to_string(i)));
  before.chosen = c.integer("chosen");
  before.chosen_best_epoch = c.integer("chosen.best_epoch");
  before.chosen_valid = c.number("chosen.valid");
  before.chosen_weights = c.part("chosen");
  before.chosen_history = History::from(c.part("chosen_history"));
  EarlyStopping stopping = run.stopping;
  stopping.best = c.number("stopping.best");
  stopping.best_epoch = c.integer("stopping.best_epoch");
  stopping.waited = c.integer("stopping.waited");
  LearningRate rate = run.rate;
  rate.restore(c);
  const StateDict best = c.part("best");
  if (!best.empty()) check_state(best, named_parameters(run.model));
  if (!before.chosen_weights.empty()) check_state(before.chosen_weights, named_parameters(run.model));
  const int64_t epoch = c.integer("epoch");
  check(epoch >= 0 && epoch == history.epochs(), "checkpoint: epoch is {} but the curves have {} points", epoch,
        history.epochs());

  restore(c, run.model, run.optimiser, run.random);
  run.epoch = epoch;
  run.best = best;
  run.stopping = stopping;
  run.rate = rate;
  run.history = std::move(history);
  finished = std::move(before);
}

void save_weights(const std::string& path, const NodeOptions& o, const NodeTask& task, const StateDict& weights) {
  Checkpoint file{weights,
                  {{"format", "pt"},
                   {"version", version()},
                   {"recipe", o.recipe},
                   {"in", to_text(task.data.num_features)},
                   {"classes", to_text(task.data.num_classes)},
                   {"data_sha256", task.data.sha256}}};
  for (const auto& [flag, value] : deciding_options(o)) file.put_text("option." + flag, value);
  for (size_t c = 0; c < task.class_names.size(); ++c) file.put_text("class." + std::to_string(c), task.class_names[c]);
  save_checkpoint(path, file);
}

void check_loss(const NodeOptions& o, const NodeRun& run, const char* which, double loss) {
  check(std::isfinite(loss),
        "run {} diverged: the {} loss is {} in epoch {}; nothing more is saved, try a smaller --lr than {}", run.index,
        which, loss, run.epoch, o.lr);
}

void check_weights(const NodeOptions& o, const NodeRun& run) {
  for (const auto& [name, tensor] : state_dict(run.model))
    check(all_finite(tensor),
          "run {} diverged: {} is not finite after epoch {}; nothing more is saved, try a smaller --lr than {}", run.index,
          name, run.epoch, o.lr);
}

}  // namespace tessera::apps
