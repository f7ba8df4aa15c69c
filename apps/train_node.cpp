// tessera-train-node: trains a graph neural network to classify the nodes of one graph, full batch.

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/event_log.h"
#include "tessera/apps/support/node_report.h"
#include "tessera/apps/support/outputs.h"
#include "tessera/apps/support/program.h"
#include "tessera/apps/support/progress.h"
#include "tessera/apps/support/score.h"
#include "tessera/core/autograd.h"
#include "tessera/core/io/file.h"
#include "tessera/core/isa.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"

using namespace tessera;
using namespace tessera::apps;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Trains `run` to its end or to Ctrl-C, from wherever it stands.
void train_run(const NodeOptions& o, const NodeTask& task, NodeRun& run, FinishedRuns& finished, Progress& progress) {
  const Tensor& labels = task.data.labels;
  const bool validated = run.split.valid.numel() > 0;
  const bool watches = keeps_best(o) || o.schedule == "plateau";
  const bool evaluates = watches || !o.report.empty() || !o.log_dir.empty();
  std::unique_ptr<EventLog> log;
  if (!o.log_dir.empty()) {
    const std::string folder = o.runs == 1 ? o.log_dir : o.log_dir + "/seed-" + to_text(o.seed + uint64_t(run.index));
    log = std::make_unique<EventLog>(folder, run.epoch, o.metric);
  }
  Clock::time_point saved = Clock::now();

  while (!run.finished(o) && !interrupted) {
    const Clock::time_point start = Clock::now();
    run.optimiser.clear_grad();
    const Tensor loss = cross_entropy(logits_of(run.model, task, run.random), labels, run.split.train);
    backward(loss);
    run.optimiser.options().lr = run.rate.at(run.epoch);
    run.optimiser.step();
    finished.result.epoch_seconds.push_back(seconds_since(start));
    ++run.epoch;
    check_loss(o, run, "training", loss.item());

    double train_score = NAN, valid_loss = NAN, valid_score = NAN;
    if (evaluates) {
      const NoGrad off;
      eval(run.model);
      const Tensor logits = logits_of(run.model, task, run.random);
      train(run.model);
      train_score = score_of(o.metric, logits, labels, run.split.train);
      if (validated) {
        valid_loss = cross_entropy(logits, labels, run.split.valid).item();
        valid_score = score_of(o.metric, logits, labels, run.split.valid);
      }
      if (validated) check_loss(o, run, "validation", valid_loss);
      if (watches) {
        const double watched = run.watched(o, valid_loss, valid_score);
        if (keeps_best(o) && run.stopping.update(run.epoch, watched)) run.keep_best();
        run.rate.update(watched);
      }
    }
    run.history.add(loss.item(), train_score, valid_loss, valid_score);
    if (log) log->add(run.history, run.epoch);
    if (progress.due())
      progress.update(share_done(o, run, finished),
                      (o.runs > 1 ? "run " + to_text(run.index + 1) + "/" + to_text(o.runs) + ", " : "") + "epoch " +
                          to_text(run.epoch) + (keeps_best(o) ? "" : "/" + to_text(o.epochs)),
                      "loss " + to_text(loss.item()) + (validated && evaluates ? ", valid " + to_text(valid_score) : ""));
    if (!o.checkpoint.empty() &&
        (o.checkpoint_every > 0 ? run.epoch % o.checkpoint_every == 0 : seconds_since(saved) >= 5)) {
      check_weights(o, run);
      save_state(o, task, run, finished);
      saved = Clock::now();
    }
  }
  check_weights(o, run);
  if (!o.checkpoint.empty()) save_state(o, task, run, finished);
}

/// Scores of a run at its end, added to `finished`.
void measure_run(const NodeOptions& o, const NodeTask& task, NodeRun& run, FinishedRuns& finished) {
  const NoGrad off;
  run.return_to_best();
  eval(run.model);
  const Tensor logits = logits_of(run.model, task, run.random);
  const auto measure = [&](const Tensor& rows, std::vector<double>& into) {
    if (rows.numel() > 0) into.push_back(score_of(o.metric, logits, task.data.labels, rows));
  };
  measure(run.split.train, finished.result.train);
  measure(run.split.valid, finished.result.valid);
  measure(run.split.test, finished.result.test);
  finished.add(run);
}

int train_node(NodeOptions o, const std::string& command) {
  check<UsageError>(!o.checkpoint.empty() || (!o.resume && o.checkpoint_every == 0),
                    "--resume and --checkpoint-every need --checkpoint DIR");
  if (o.threads > 0) set_threads(o.threads);
  check_one_graph(o);
  std::vector<NamedPath> outputs = {
      {"--json", o.json}, {"--report", o.report}, {"--save", o.save}, {"--checkpoint", o.checkpoint}};
  if (!o.checkpoint.empty())
    for (const std::string& file : {checkpoint_path(o.checkpoint), weights_path(o.checkpoint)})
      outputs.push_back({"--checkpoint", file});
  check_distinct(outputs, inputs_of(o));
  for (const auto& [flag, path] : {std::pair{"--json", o.json}, {"--report", o.report}, {"--save", o.save}})
    check_output_file(flag, path);
  make_output_folder("--checkpoint", o.checkpoint);
  make_output_folder("--log-dir", o.log_dir);
  Manifest manifest{.command = command, .device = o.device, .seed = o.seed};

  if (!o.edges.empty()) o.dataset = o.edges;
  CsvGraph graph = load_nodes(o);
  if (const int64_t hidden = graph.data.splits.empty() ? 0 : drop_unlabelled(graph.data); hidden > 0)
    std::fprintf(stderr, "%lld node%s of the split without a label, left out of it\n", (long long)hidden,
                 hidden == 1 ? "" : "s");
  fill_from_recipe(o, graph.data);
  const NodeTask task = make_task(o, std::move(graph));
  for (const std::string& line : check_metric(o, task.data)) std::fprintf(stderr, "%s\n", line.c_str());
  manifest.recipe = o.recipe;
  manifest.data_sha256 = task.data.sha256;
  manifest.dataset = o.dataset;
  manifest.options = deciding_options(o);

  int64_t first = 0;
  std::optional<Checkpoint> saved;
  if (!o.checkpoint.empty() && file_exists(checkpoint_path(o.checkpoint))) {
    check<UsageError>(o.resume, "{} is there already: --resume continues it, another folder starts anew",
                      checkpoint_path(o.checkpoint));
    saved = load_checkpoint(checkpoint_path(o.checkpoint));
    check_same_options(o, task, *saved);
    first = saved_run(*saved);
  }
  FinishedRuns finished{.result = {.metric = o.metric}};
  std::optional<NodeRun> run(std::in_place, o, task, first);
  if (saved) load_state(*saved, *run, finished);

  std::printf("%s; %lld/%lld/%lld train/valid/test\n", describe(task.data).c_str(), (long long)run->split.train.numel(),
              (long long)run->split.valid.numel(), (long long)run->split.test.numel());
  std::printf("%s, recipe %s, %lld run%s of %s%lld epochs, seed %llu, %d thread%s, %s\n", o.model.c_str(), o.recipe.c_str(),
              (long long)o.runs, o.runs == 1 ? "" : "s", keeps_best(o) ? "at most " : "", (long long)o.epochs,
              (unsigned long long)o.seed, threads(), threads() == 1 ? "" : "s", name(active_isa()));
  if (saved) std::printf("continues run %lld after epoch %lld\n", (long long)first, (long long)run->epoch);
  std::fflush(stdout);

  Progress progress(task.data.name, share_done(o, *run, finished));
  while (true) {
    train_run(o, task, *run, finished, progress);
    if (!run->finished(o)) break;
    measure_run(o, task, *run, finished);
    if (run->index + 1 >= o.runs) break;
    run.emplace(o, task, run->index + 1);
  }
  progress.finish();
  if (!run->finished(o)) {
    std::fprintf(stderr, "stopped in run %lld after epoch %lld; %s\n", (long long)run->index, (long long)run->epoch,
                 o.checkpoint.empty() ? "nothing was saved, --checkpoint DIR would" : "--resume continues from there");
    return kInterrupted;
  }

  print_result(finished.result);
  if (!o.save.empty()) save_weights(o.save, o, task, finished.chosen_weights);
  if (!o.checkpoint.empty()) save_weights(weights_path(o.checkpoint), o, task, finished.chosen_weights);
  if (!o.report.empty()) write_atomically(o.report, node_report(o, task, finished, manifest));
  if (!o.json.empty()) write_result(o.json, manifest, finished.result);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  NodeOptions o;
  CLI::App app("Trains a graph neural network to classify the nodes of a graph.", "tessera-train-node");
  add_data_options(app, o);
  add_training_options(app, o);
  add_output_options(app, o);
  add_machine_options(app, o);
  app.set_version_flag("--version", std::string("tessera ") + version());
  app.footer(
      "Examples:\n"
      "  tessera-train-node\n"
      "      Zachary's karate club, which is built in: 34 people, 4 of them labelled.\n"
      "  tessera-train-node --dataset cora --data ../shared/data --runs 10 --report cora.html --json cora.json\n"
      "      Ten runs with seeds 0 to 9; a page with curves and confusion matrix, and all numbers as JSON.\n"
      "  tessera-train-node --dataset amazon_electronics_photo --data DIR --runs 20 --checkpoint photo --resume\n"
      "      Random splits with early stopping; the same line again continues after a kill, bit for bit.\n"
      "  tessera-train-node --edges edges.csv --nodes nodes.csv --report own.html --save own.safetensors\n"
      "      Your own graph; tessera-predict then labels its nodes with the saved weights.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted (with --checkpoint: state saved).");
  return run_program(app, argc, argv, [&] { return train_node(o, command_line(argc, argv)); });
}
