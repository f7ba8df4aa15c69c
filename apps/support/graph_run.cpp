#include "tessera/apps/support/graph_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/apps/support/metric.h"
#include "tessera/apps/support/program.h"
#include "tessera/apps/support/state.h"
#include "tessera/core/autograd.h"
#include "tessera/core/isa.h"
#include "tessera/core/metrics.h"
#include "tessera/core/ops/arrange.h"
#include "tessera/core/ops/elementwise.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/printable.h"
#include "tessera/core/version.h"

namespace tessera::apps {
namespace {

Generator generator_of(const GraphOptions& o, const GraphSet& set, int64_t unit) {
  const GraphUnit u = unit_of(o, set, unit);
  const uint64_t seed = o.seed + uint64_t(u.run);
  Generator random(seed);
  // Far enough apart for any training; the same draws whatever other runs there are.
  random.restore(seed, (uint64_t(u.cell) * uint64_t(folds_of(o, set)) + uint64_t(u.fold)) << 36);
  return random;
}

GraphModel make_model(const GraphOptions& o, const GraphSet& set, Generator& random) {
  return make_graph_model(o.model,
                          {.in = set.num_features,
                           .hidden = o.hidden,
                           .out = set.outputs,
                           .layers = o.layers,
                           .dropout = o.dropout,
                           .ratio = o.ratio,
                           .categories = set.x.defined() && set.x.dtype() == DType::i64},
                          random);
}

Tensor targets_of(const GraphSet& set, const Tensor& ids) {
  const int64_t n = ids.numel();
  const bool classes = set.task == GraphTask::classes;
  const int64_t width = classes ? 1 : set.outputs;
  Tensor out = classes ? Tensor::empty({n}, DType::i32) : Tensor::empty({n, width});
  char* into = static_cast<char*>(out.mutable_raw());
  const size_t row = size_t(width) * 4;
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(into + size_t(i) * row, static_cast<const char*>(set.y.raw()) + size_t(ids.data<int32_t>()[i]) * row, row);
  return out;
}

/// Of the values, whatever is measured: smaller is better.
double criterion(const GraphOptions& o, double valid_loss, double valid_score) {
  if (o.stop_on == "loss") return valid_loss;
  return larger_is_better(o.metric) ? -valid_score : valid_score;
}

/// Mean criterion of the units [begin, end).
double criterion_of(const GraphOptions& o, const TrainingResult& all, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t u = begin; u < end; ++u) sum += criterion(o, all.valid_loss[size_t(u)], all.valid[size_t(u)]);
  return sum / double(end - begin);
}

void put_chosen(Checkpoint& c, const std::string& name, const ChosenRun& chosen) {
  c.put_integer(name + ".unit", chosen.unit);
  c.put_integer(name + ".best_epoch", chosen.best_epoch);
  c.put_number(name + ".criterion", chosen.criterion);
  c.put(name, chosen.weights);
  c.put(name + "_history", chosen.history.state());
}

ChosenRun chosen_in(const Checkpoint& c, const std::string& name) {
  return {.unit = c.integer(name + ".unit"),
          .best_epoch = c.integer(name + ".best_epoch"),
          .criterion = c.number(name + ".criterion"),
          .weights = c.part(name),
          .history = History::from(c.part(name + "_history"))};
}

}  // namespace

Tensor loss_of(GraphTask task, const Tensor& logits, const Tensor& y, const Tensor& weights) {
  if (task == GraphTask::classes) return cross_entropy(logits, y, {}, {.class_weights = weights});
  const auto targets = y.span<float>();
  const int64_t known = std::count_if(targets.begin(), targets.end(), [](float t) { return !std::isnan(t); });
  if (known == 0) return {};
  if (task == GraphTask::binary)
    return bce_with_logits(logits, y, {.positive_weights = weights, .skip_nan = known < y.numel()});
  if (known == y.numel()) return mse_loss(logits, y);
  // An unknown target is taken to be met: no loss, no gradient.
  const Tensor met = where(equal(y, y), y, logits.detach());
  return scale(mse_loss(logits, met, Reduction::sum), 1.0 / double(known));
}

double score_of(const std::string& metric, GraphTask task, const Tensor& logits, const Tensor& y) {
  const int64_t n = y.numel();
  if (n == 0) return std::nan("");
  if (task == GraphTask::regression) return (metric == "rmse" ? rmse(logits, y) : mae(logits, y)).mean;
  if (task == GraphTask::classes) {
    if (metric == "accuracy") return accuracy(logits, y);
    Tensor scores = Tensor::empty({n}, DType::f64), truth = Tensor::empty({n}, DType::f64);
    const float* x = logits.data<float>();
    for (int64_t i = 0; i < n; ++i) {
      scores.mutable_data<double>()[i] = double(x[2 * i + 1]) - double(x[2 * i]);
      truth.mutable_data<double>()[i] = y.data<int32_t>()[i];
    }
    return (metric == "roc-auc" ? roc_auc(scores, truth) : average_precision(scores, truth)).mean;
  }
  if (metric == "roc-auc") return roc_auc(logits, y).mean;
  if (metric == "ap") return average_precision(logits, y).mean;
  int64_t right = 0, known = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float t = y.data<float>()[i];
    if (std::isnan(t)) continue;
    ++known;
    right += (logits.data<float>()[i] > 0) == (t > 0);
  }
  return known == 0 ? std::nan("") : double(right) / double(known);
}

GraphPart::GraphPart(const GraphSet& set, const Tensor& ids, int64_t batch) : y(targets_of(set, ids)) {
  const auto all = ids.span<int32_t>();
  for (size_t begin = 0; begin < all.size(); begin += size_t(batch))
    batches.push_back(set.sample(all.subspan(begin, std::min(size_t(batch), all.size() - begin))));
}

GraphRun::GraphRun(const GraphOptions& o, const GraphSet& set, int64_t unit)
    : index(unit),
      options(options_of_cell(o, unit_of(o, set, unit).cell)),
      split(split_of_unit(o, set, unit_of(o, set, unit))),
      weights(class_weights_of(o, set, split)),
      random(generator_of(o, set, unit)),
      model(make_model(options, set, random)),
      optimiser({Adam::Group{parameters(model), o.weight_decay}}, {.lr = o.lr}),
      stopping{.patience = o.patience, .larger_is_better = o.stop_on == "metric" && larger_is_better(o.metric)},
      rate(options),
      valid(set, split.valid, o.batch) {}

std::vector<int32_t> GraphRun::shuffled() {
  const Philox draw = random.next();
  std::vector<std::pair<uint64_t, int32_t>> keyed;
  for (const int32_t g : split.train.span<int32_t>()) {
    const Philox::Draw bits = draw(uint64_t(g));
    keyed.emplace_back((uint64_t{bits.bits[0]} << 32) | bits.bits[1], g);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<int32_t> out;
  for (const auto& [key, g] : keyed) out.push_back(g);
  return out;
}

void GraphRun::keep_best() {
  const StateDict now = state_dict(model);
  if (best.empty())
    best = copies_of(now);
  else
    copy_state(now, {best.begin(), best.end()});
}

void GraphRun::return_to_best() {
  if (!best.empty()) load_state_dict(model, best);
}

Tensor GraphRun::logits_of(const GraphPart& part) {
  const NoGrad off;
  model.set_training(false);
  std::vector<Tensor> rows;
  for (const GraphSample& batch : part.batches) rows.push_back(model(batch, random));
  model.set_training(true);
  return rows.size() == 1 ? rows[0] : concat(rows);
}

Tensor GraphRun::logits_of(const GraphSet& set, const Tensor& ids) {
  const NoGrad off;
  model.set_training(false);
  const auto all = ids.span<int32_t>();
  std::vector<Tensor> rows;
  for (size_t begin = 0; begin < all.size(); begin += size_t(options.batch))
    rows.push_back(model(set.sample(all.subspan(begin, std::min(size_t(options.batch), all.size() - begin))), random));
  model.set_training(true);
  return rows.size() == 1 ? rows[0] : concat(rows);
}

void FinishedUnits::add(const GraphOptions& o, const GraphSet& set, GraphRun& run, double valid_loss) {
  run.return_to_best();
  const auto measure = [&](const Tensor& ids, std::vector<double>& into) {
    into.push_back(ids.numel() == 0 ? std::nan("")
                                    : score_of(o.metric, set.task, run.logits_of(set, ids), targets_of(set, ids)));
  };
  measure(run.split.train, all.train);
  measure(run.split.valid, all.valid);
  measure(run.split.test, all.test);
  all.valid_loss.push_back(valid_loss);
  all.epochs.push_back(run.history.epochs());
  const StateDict weights = state_dict(run.model);
  all.weights_sha256.push_back(digest_of(weights));

  const double value = criterion(o, valid_loss, all.valid.back());  // NaN is never less
  if (now.unit < 0 || value < now.criterion || (std::isnan(now.criterion) && !std::isnan(value)))
    now = {run.index, run.stopping.best_epoch, value, copies_of(weights), run.history};
  const int64_t cell = o.runs * folds_of(o, set), end = run.index + 1;
  if (!o.grid || o.grid_choice == "fold" || end % cell != 0) return;
  const int64_t before = best.unit < 0 ? -1 : best.unit / cell * cell;
  if (before < 0 || criterion_of(o, all, end - cell, end) < criterion_of(o, all, before, before + cell)) best = now;
  now = {};
}

TrainingResult FinishedUnits::chosen(const GraphOptions& o, const GraphSet& set) const {
  const int64_t folds = folds_of(o, set), cell = o.runs * folds;
  TrainingResult out{.metric = o.metric, .items = "graphs"};
  out.folds = folds;
  out.epoch_seconds = all.epoch_seconds;
  // The cell that each fold is reported from.
  std::vector<int64_t> from(size_t(folds), best.unit < 0 ? 0 : best.unit / cell);
  if (o.grid && o.grid_choice == "fold")
    for (int64_t fold = 0; fold < folds; ++fold) {
      double least = std::numeric_limits<double>::infinity();
      for (int64_t c = 0; c < cells_of(o); ++c) {
        double sum = 0;
        for (int64_t run = 0; run < o.runs; ++run) {
          const int64_t u = (c * o.runs + run) * folds + fold;
          sum += criterion(o, all.valid_loss[size_t(u)], all.valid[size_t(u)]);
        }
        if (sum < least) {
          least = sum;
          from[size_t(fold)] = c;
        }
      }
    }
  const auto put = [](std::vector<double>& into, double value, const Tensor& ids) {
    if (ids.numel() > 0) into.push_back(value);
  };
  for (int64_t run = 0; run < o.runs; ++run)
    for (int64_t fold = 0; fold < folds; ++fold) {
      const size_t u = size_t((from[size_t(fold)] * o.runs + run) * folds + fold);
      const GraphSplit split = split_of_unit(o, set, {0, run, fold});
      put(out.train, all.train[u], split.train);
      put(out.valid, all.valid[u], split.valid);
      put(out.valid_loss, all.valid_loss[u], split.valid);
      put(out.test, all.test[u], split.test);
      out.epochs.push_back(all.epochs[u]);
      out.weights_sha256.push_back(all.weights_sha256[u]);
    }
  for (int64_t c = 0; o.grid && c < cells_of(o); ++c) {
    const GraphOptions tried = options_of_cell(o, c);
    const auto begin = all.test.begin() + c * cell;
    out.grid.push_back({{{"--layers", to_text(tried.layers)}, {"--hidden", to_text(tried.hidden)}},
                        Summary({all.valid_loss.begin() + c * cell, all.valid_loss.begin() + (c + 1) * cell}).mean,
                        {begin, begin + cell}});
  }
  return out;
}

double share_done(const GraphOptions& o, const GraphSet& set, const GraphRun& run, const FinishedUnits& finished) {
  double epochs = double(o.epochs);
  if (o.patience > 0) {
    if (finished.all.epochs.empty()) return 0;
    epochs = 0;
    for (const int64_t n : finished.all.epochs) epochs += double(n) / double(finished.all.epochs.size());
  }
  return (double(run.index) + std::min(0.95, double(run.epoch) / epochs)) / double(units_of(o, set));
}

void save_state(const GraphOptions& o, const GraphSet& set, const GraphRun& run, const FinishedUnits& finished) {
  Checkpoint c;
  c.put("model", state_dict(run.model));
  c.put("optimiser", run.optimiser.state());
  c.put("best", run.best);
  c.put("history", run.history.state());
  c.put_generator("generator", run.random);
  c.put_integer("unit", run.index);
  c.put_integer("epoch", run.epoch);
  c.put_number("stopping.best", run.stopping.best);
  c.put_integer("stopping.best_epoch", run.stopping.best_epoch);
  c.put_integer("stopping.waited", run.stopping.waited);
  run.rate.put(c);

  const TrainingResult& r = finished.all;
  c.put("finished", {{"train", to_tensor(r.train)},
                     {"valid", to_tensor(r.valid)},
                     {"test", to_tensor(r.test)},
                     {"valid_loss", to_tensor(r.valid_loss)},
                     {"epoch_seconds", to_tensor(r.epoch_seconds)},
                     {"epochs", to_tensor({r.epochs.begin(), r.epochs.end()})}});
  for (size_t i = 0; i < r.weights_sha256.size(); ++i)
    c.put_text("finished.weights_sha256." + std::to_string(i), r.weights_sha256[i]);
  put_chosen(c, "now", finished.now);
  put_chosen(c, "chosen", finished.best);

  for (const auto& [flag, value] : deciding_options(o)) c.put_text("option." + flag, value);
  c.put_integer("option.--runs", o.runs);
  c.put_text("data_sha256", set.sha256);
  c.put_text("isa", name(active_isa()));
  c.put_text("version", version());
  save_checkpoint(o.checkpoint + "/checkpoint.safetensors", c);
}

int64_t saved_unit(const GraphOptions& o, const GraphSet& set, const Checkpoint& checkpoint) {
  const int64_t unit = checkpoint.integer("unit"), units = units_of(o, set);
  check(unit >= 0 && unit < units, "checkpoint: unit is {} but needs to be in [0, {})", unit, units);
  return unit;
}

void check_same_options(const GraphOptions& o, const GraphSet& set, const Checkpoint& checkpoint) {
  std::string differences;
  std::map<std::string, std::string> options = deciding_options(o);
  if (o.grid) options["--runs"] = to_text(o.runs);  // else more runs may follow those that were asked for
  for (const auto& [flag, value] : options) {
    const std::string saved = checkpoint.has("option." + flag) ? checkpoint.text("option." + flag) : "not set";
    if (saved != value)
      differences += (differences.empty() ? "" : ", ") + flag + " " + value + " (was " + printable(saved) + ")";
  }
  if (checkpoint.text("data_sha256") != set.sha256)
    differences += std::string(differences.empty() ? "" : ", ") + "the data files";
  check<UsageError>(differences.empty(),
                    "{}: was made with other options: {}; give the same, or another --checkpoint folder",
                    o.checkpoint + "/checkpoint.safetensors", differences);
}

void load_state(const Checkpoint& c, GraphRun& run, FinishedUnits& finished) {
  History history = History::from(c.part("history"));
  FinishedUnits before;
  const StateDict numbers = c.part("finished");
  before.all = {.metric = run.options.metric,
                .train = numbers_of(numbers, "train"),
                .valid = numbers_of(numbers, "valid"),
                .test = numbers_of(numbers, "test"),
                .epoch_seconds = numbers_of(numbers, "epoch_seconds")};
  before.all.valid_loss = numbers_of(numbers, "valid_loss");
  for (const double epochs : numbers_of(numbers, "epochs")) before.all.epochs.push_back(int64_t(epochs));
  // A state that was saved at the very end has its own unit among the finished ones.
  const size_t units = before.all.epochs.size();
  check(units == size_t(run.index) || units == size_t(run.index) + 1, "checkpoint: unit is {} but {} are finished",
        run.index, units);
  for (const auto* values : {&before.all.train, &before.all.valid, &before.all.test, &before.all.valid_loss})
    check(values->size() == units, "checkpoint: has {} results of {} units", values->size(), units);
  for (size_t i = 0; i < units; ++i)
    before.all.weights_sha256.push_back(c.text("finished.weights_sha256." + std::to_string(i)));
  before.now = chosen_in(c, "now");
  before.best = chosen_in(c, "chosen");
  EarlyStopping stopping = run.stopping;
  stopping.best = c.number("stopping.best");
  stopping.best_epoch = c.integer("stopping.best_epoch");
  stopping.waited = c.integer("stopping.waited");
  LearningRate rate = run.rate;
  rate.restore(c);
  const StateDict best = c.part("best");
  if (!best.empty()) check_state(best, named_parameters(run.model));
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

void save_weights(const std::string& path, const GraphOptions& o, const GraphSet& set, const ChosenRun& chosen) {
  const GraphOptions cell = options_of_cell(o, unit_of(o, set, chosen.unit).cell);
  Checkpoint file{chosen.weights,
                  {{"format", "pt"},
                   {"version", version()},
                   {"recipe", o.recipe},
                   {"task", set.task == GraphTask::classes  ? "classes"
                            : set.task == GraphTask::binary ? "binary"
                                                            : "regression"},
                   {"in", to_text(set.num_features)},
                   {"outputs", to_text(set.outputs)},
                   {"data_sha256", set.sha256}}};
  for (const auto& [flag, value] : deciding_options(cell)) file.put_text("option." + flag, value);
  for (size_t c = 0; c < set.class_names.size(); ++c) file.put_text("class." + std::to_string(c), set.class_names[c]);
  save_checkpoint(path, file);
}

void check_loss(const GraphSet& set, const GraphOptions& o, const GraphRun& run, const char* which, double loss) {
  if (std::isfinite(loss)) return;
  const std::string unit = name_of_unit(o, set, run.index);
  fail<Error>("{}diverged: the {} loss is {} in epoch {}; nothing more is saved, try a smaller --lr than {}",
              unit.empty() ? "the training " : unit + ": ", which, loss, run.epoch, o.lr);
}

void check_weights(const GraphSet& set, const GraphOptions& o, const GraphRun& run) {
  for (const auto& [name, tensor] : state_dict(run.model)) {
    if (tensor.dtype() != DType::f32 || all_finite(tensor)) continue;
    const std::string unit = name_of_unit(o, set, run.index);
    fail<Error>("{}diverged: {} is not finite after epoch {}; nothing more is saved, try a smaller --lr than {}",
                unit.empty() ? "the training " : unit + ": ", name, run.epoch, o.lr);
  }
}

}  // namespace tessera::apps
