// tessera-train-graph: trains a graph neural network to classify or measure whole graphs, in batches.

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/downloads.h"
#include "tessera/apps/support/event_log.h"
#include "tessera/apps/support/graph_report.h"
#include "tessera/apps/support/metric.h"
#include "tessera/apps/support/outputs.h"
#include "tessera/apps/support/program.h"
#include "tessera/apps/support/progress.h"
#include "tessera/core/autograd.h"
#include "tessera/core/io/file.h"
#include "tessera/core/isa.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"
#include "tessera/datasets/graph_set/find.h"

using namespace tessera;
using namespace tessera::apps;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string state_path(const GraphOptions& o) { return o.checkpoint + "/checkpoint.safetensors"; }
std::string weights_path(const GraphOptions& o) { return o.checkpoint + "/model.safetensors"; }

/// "run-1-fold-3" of "run 1, fold 3".
std::string folder_name(const std::string& unit) {
  std::string out;
  for (const char c : unit)
    if (c != ',') out += c == ' ' ? '-' : c;
  return out;
}

/// One pass over the training graphs. Gives their mean loss; NaN when `stop` said so on the way.
template <class Stop>
double train_epoch(const GraphSet& set, GraphRun& run, const Stop& stop) {
  const std::vector<int32_t> order = run.shuffled();
  double loss_sum = 0;
  int64_t count = 0;
  for (size_t begin = 0; begin < order.size(); begin += size_t(run.options.batch)) {
    if (stop()) return NAN;
    const size_t size = std::min(size_t(run.options.batch), order.size() - begin);
    const GraphSample batch = set.sample(std::span(order).subspan(begin, size));
    // Nothing to normalise over. OGB's programs leave out a rest of one molecule too.
    if (batch.x.dim(0) < 2 || (size < 2 && batch.x.dtype() == DType::i64)) continue;
    run.optimiser.clear_grad();
    const Tensor loss = loss_of(set.task, run.model(batch, run.random), batch.y, run.weights);
    if (!loss.defined()) continue;
    backward(loss);
    run.optimiser.step();
    loss_sum += loss.item() * double(size);
    count += int64_t(size);
  }
  return count == 0 ? 0 : loss_sum / double(count);
}

/// Trains `run` to its end or to Ctrl-C, from wherever it stands. False when it was stopped within an epoch, whose beginning
/// is what was saved last.
bool train_run(const GraphOptions& o, const GraphSet& set, GraphRun& run, FinishedUnits& finished, Progress& progress,
               Clock::time_point& saved) {
  const bool validated = run.split.valid.numel() > 0, scored = !o.report.empty() || !o.log_dir.empty();
  const std::string name = name_of_unit(o, set, run.index);
  std::unique_ptr<EventLog> log;
  if (!o.log_dir.empty())
    log = std::make_unique<EventLog>(name.empty() ? o.log_dir : o.log_dir + "/" + folder_name(name), run.epoch, o.metric);
  int64_t saved_epoch = o.checkpoint.empty() ? run.epoch : -1;

  while (!run.finished() && !interrupted) {
    const Clock::time_point start = Clock::now();
    run.optimiser.options().lr = run.rate.at(run.epoch);
    // A short epoch is finished, so that what was done since the last saved state is not lost.
    const double loss =
        train_epoch(set, run, [&] { return interrupted && (saved_epoch == run.epoch || o.checkpoint.empty()); });
    if (std::isnan(loss) && interrupted) return false;
    finished.all.epoch_seconds.push_back(seconds_since(start));
    ++run.epoch;
    check_loss(set, o, run, "training", loss);

    double train_score = NAN, valid_loss = NAN, valid_score = NAN;
    if (scored) {
      const GraphPart part(set, run.split.train, run.options.batch);
      train_score = score_of(o.metric, set.task, run.logits_of(part), part.y);
    }
    if (validated) {
      const Tensor logits = run.logits_of(run.valid);
      const Tensor valid = loss_of(set.task, logits, run.valid.y, run.weights);
      valid_loss = valid.defined() ? valid.item() : 0;
      check_loss(set, o, run, "validation", valid_loss);
      if (scored || o.stop_on == "metric") valid_score = score_of(o.metric, set.task, logits, run.valid.y);
      const double watched = o.stop_on == "metric" ? valid_score : valid_loss;
      if (run.stopping.update(run.epoch, watched) && o.take == "best") run.keep_best();
      run.rate.update(watched);
    }
    run.history.add(loss, train_score, valid_loss, valid_score);
    if (log) log->add(run.history, run.epoch);
    if (progress.due())
      progress.update(share_done(o, set, run, finished),
                      (name.empty() ? "" : name + ", ") + "epoch " + to_text(run.epoch) +
                          (o.patience > 0 ? "" : "/" + to_text(o.epochs)),
                      "loss " + to_text(loss) + (validated ? ", validation loss " + to_text(valid_loss) : ""));
    if (!o.checkpoint.empty() &&
        (o.checkpoint_every > 0 ? run.epoch % o.checkpoint_every == 0 : seconds_since(saved) >= 5)) {
      check_weights(set, o, run);
      save_state(o, set, run, finished);
      saved = Clock::now();
      saved_epoch = run.epoch;
    }
  }
  check_weights(set, o, run);
  if (!run.finished() && !o.checkpoint.empty() && saved_epoch != run.epoch) save_state(o, set, run, finished);
  return true;
}

/// The loss of the validation graphs with the weights that are taken.
double taken_loss(const GraphOptions& o, const GraphRun& run) {
  if (run.split.valid.numel() == 0) return NAN;
  const int64_t epoch = o.take == "best" && run.stopping.best_epoch > 0 ? run.stopping.best_epoch : run.epoch;
  return run.history.valid_loss[size_t(epoch - 1)];
}

void check_paths(const GraphOptions& o) {
  check<UsageError>(!o.checkpoint.empty() || (!o.resume && o.checkpoint_every == 0),
                    "--resume and --checkpoint-every need --checkpoint DIR");
  std::vector<NamedPath> outputs = {
      {"--json", o.json}, {"--report", o.report}, {"--save", o.save}, {"--checkpoint", o.checkpoint}};
  if (!o.checkpoint.empty())
    for (const std::string& file : {state_path(o), weights_path(o)}) outputs.push_back({"--checkpoint", file});
  check_distinct(outputs, {{"--data", o.data.ends_with(".zip") ? o.data : ""},
                           {"--dataset", o.dataset.ends_with(".zip") ? o.dataset : ""}});
  for (const auto& [flag, path] : {std::pair{"--json", o.json}, {"--report", o.report}, {"--save", o.save}})
    check_output_file(flag, path);
  make_output_folder("--checkpoint", o.checkpoint);
  make_output_folder("--log-dir", o.log_dir);
}

GraphSet load_set(const GraphOptions& o) {
  try {
    return load_graph_set(o.dataset, data_folders(o.data));
  } catch (const InvalidArgument& error) {
    throw UsageError(std::string("--dataset: ") + error.what());
  }
}

int train_graph(GraphOptions o, const std::string& command) {
  if (o.threads > 0) set_threads(o.threads);
  check_paths(o);
  Manifest manifest{.command = command, .device = o.device, .seed = o.seed};
  GraphSet set = load_set(o);
  if (set.loops_left_out + set.edges_merged > 0)
    std::fprintf(stderr, "%lld self loops left out, %lld repeated edges merged\n", (long long)set.loops_left_out,
                 (long long)set.edges_merged);
  fill_from_recipe(o, set);
  for (const std::string& line : check_splits(o, set)) std::fprintf(stderr, "%s\n", line.c_str());
  manifest.recipe = o.recipe;
  manifest.data_sha256 = set.sha256;
  manifest.dataset = set.name;
  manifest.options = deciding_options(o);

  int64_t first = 0;
  std::optional<Checkpoint> saved;
  if (!o.checkpoint.empty() && file_exists(state_path(o))) {
    check<UsageError>(o.resume, "{} is there already: --resume continues it, another folder starts anew", state_path(o));
    saved = load_checkpoint(state_path(o));
    check_same_options(o, set, *saved);
    first = saved_unit(o, set, *saved);
  }
  FinishedUnits finished;
  std::optional<GraphRun> run(std::in_place, o, set, first);
  if (saved) load_state(*saved, *run, finished);

  const int64_t units = units_of(o, set), folds = folds_of(o, set);
  std::printf("%s; %lld/%lld/%lld train/valid/test\n", describe(set).c_str(), (long long)run->split.train.numel(),
              (long long)run->split.valid.numel(), (long long)run->split.test.numel());
  std::printf("%s, recipe %s, %s%lld run%s of %s%s%lld epochs, seed %llu, %d thread%s, %s\n", o.model.c_str(),
              o.recipe.c_str(), o.grid ? "20 cells of " : "", (long long)o.runs, o.runs == 1 ? "" : "s",
              folds > 1 ? (to_text(folds) + " folds of ").c_str() : "", o.patience > 0 ? "at most " : "",
              (long long)o.epochs, (unsigned long long)o.seed, threads(), threads() == 1 ? "" : "s", name(active_isa()));
  if (saved) std::printf("continues %s after epoch %lld\n", name_of_unit(o, set, first).c_str(), (long long)run->epoch);
  std::fflush(stdout);

  Progress progress(set.name, share_done(o, set, *run, finished));
  Clock::time_point last_saved = Clock::now();
  while (true) {
    const bool whole = train_run(o, set, *run, finished, progress, last_saved);
    if (!whole || !run->finished()) break;
    // A state that was saved at the very end knows its result already.
    if (int64_t(finished.all.test.size()) == run->index) finished.add(o, set, *run, taken_loss(o, *run));
    if (run->index + 1 >= units) break;
    run.emplace(o, set, run->index + 1);
  }
  progress.finish();
  if (!run->finished()) {
    std::fprintf(stderr, "stopped%s after epoch %lld; %s\n",
                 units > 1 ? (" in " + name_of_unit(o, set, run->index)).c_str() : "", (long long)run->epoch,
                 o.checkpoint.empty() ? "nothing was saved, --checkpoint DIR would" : "--resume continues from there");
    return kInterrupted;
  }

  const TrainingResult result = finished.chosen(o, set);
  print_result(result);
  if (!o.checkpoint.empty()) {
    save_state(o, set, *run, finished);
    save_weights(weights_path(o), o, set, finished.chosen_run());
  }
  if (!o.save.empty()) save_weights(o.save, o, set, finished.chosen_run());
  if (!o.report.empty()) write_atomically(o.report, graph_report(o, set, finished, manifest));
  if (!o.json.empty()) write_result(o.json, manifest, result);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  GraphOptions o;
  CLI::App app("Trains a graph neural network to classify or measure whole graphs.", "tessera-train-graph");
  add_graph_data_options(app, o);
  add_graph_training_options(app, o);
  add_output_options(app, o);
  app.get_option("--save")->description("file for the weights (safetensors), under PyG's names");
  add_machine_options(app, o);
  app.set_version_flag("--version", std::string("tessera ") + version());
  app.footer(
      "Examples:\n"
      "  tessera-train-graph --dataset PROTEINS --data ../shared/data --model gin --folds 10 --json gin.json\n"
      "      Cross-validation as PyG's benchmark does it, one cell of 3 layers by 32; --runs 3 repeats it.\n"
      "  tessera-train-graph --dataset PROTEINS --data ../shared/data --model sagpool --grid --checkpoint grid --resume\n"
      "      Its whole search of layers and widths; the same line again continues after a kill, bit for bit.\n"
      "  tessera-train-graph --dataset NCI1 --data DIR --recipe sagpool --runs 20 --report nci1.html\n"
      "      Twenty random splits with early stopping, as the SAGPool paper; a page with curves and confusion matrix.\n"
      "  tessera-train-graph --dataset ogbg-molesol --data DIR --model gcn-virtual --runs 5 --save esol.safetensors\n"
      "      Molecules by OGB's protocol, measured by RMSE.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted (with --checkpoint: state saved).");
  return run_program(app, argc, argv, [&] { return train_graph(o, command_line(argc, argv)); });
}
