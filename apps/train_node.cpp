// tessera-train-node: trains a graph neural network to classify the nodes of one graph, full batch.

#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/program.h"
#include "tessera/apps/support/progress.h"
#include "tessera/apps/support/result.h"
#include "tessera/core/autograd.h"
#include "tessera/core/isa.h"
#include "tessera/core/metrics.h"
#include "tessera/core/module.h"
#include "tessera/core/ops/loss.h"
#include "tessera/core/optim/adam.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/layers/models/gcn.h"

using namespace tessera;
using namespace tessera::apps;

namespace {

/// A negative number leaves the choice to the recipe.
struct Options {
  std::string dataset = "karate", data = ".", model = "gcn", recipe = "kipf", json, device = "cpu";
  int runs = 1, epochs = -1, hidden = -1, layers = -1, threads = 0;
  double lr = -1, dropout = -1, weight_decay = -1;
  uint64_t seed = 0;
};

/// Kipf and Welling (2017): two layers of 16, dropout 0.5 on both inputs, L2 on the first layer alone, 200 epochs, the last
/// one counts.
void fill_from_recipe(Options& o) {
  const auto fill = [](auto& option, auto value) {
    if (option < 0) option = value;
  };
  fill(o.epochs, 200);
  fill(o.hidden, 16);
  fill(o.layers, 2);
  fill(o.lr, 0.01);
  fill(o.dropout, 0.5);
  fill(o.weight_decay, 5e-4);
}

struct Task {
  NodeDataset data;
  Graph graph;
  SparseMatrix sparse;  // features, when they are sparse
};

Tensor logits_of(const Gcn& model, const Task& task, Generator& random) {
  return task.data.sparse_features() ? model(task.sparse, task.graph, random)
                                     : model(task.data.features, task.graph, random);
}

/// One training run; adds its accuracies and epoch times to `result`.
void train_once(const Options& o, const Task& task, uint64_t seed, Progress& progress, int64_t epochs_before,
                TrainingResult& result) {
  Generator random(seed);
  Gcn model({.in = task.data.num_features,
             .hidden = o.hidden,
             .out = task.data.num_classes,
             .layers = o.layers,
             .dropout = o.dropout,
             .input_dropout = o.dropout},
            random);
  std::vector<Adam::Group> groups;
  for (size_t i = 0; i < model.convs.size(); ++i)
    groups.push_back({parameters(model.convs[i]), i == 0 ? o.weight_decay : 0.0});
  Adam optimiser(groups, {.lr = o.lr});

  const NodeSplit& split = task.data.splits[0];
  const Tensor& labels = task.data.labels;
  for (int epoch = 0; epoch < o.epochs && !interrupted; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    optimiser.clear_grad();
    const Tensor loss = cross_entropy(logits_of(model, task, random), labels, split.train);
    backward(loss);
    optimiser.step();
    result.epoch_seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    progress.update(epochs_before + epoch + 1, "loss " + to_text(loss.item()));
  }
  eval(model);
  const NoGrad off;
  const Tensor logits = logits_of(model, task, random);
  const auto measure = [&](const Tensor& rows, std::vector<double>& into) {
    if (rows.numel() > 0) into.push_back(accuracy(logits, labels, rows));
  };
  measure(split.train, result.train);
  measure(split.valid, result.valid);
  measure(split.test, result.test);
}

int train_node(Options o, const std::string& command) {
  if (o.threads > 0) set_threads(o.threads);
  fill_from_recipe(o);
  Manifest manifest{.command = command, .recipe = o.recipe, .dataset = o.dataset, .device = o.device, .seed = o.seed};

  Task task{.data = load_node_dataset(o.dataset, o.data)};
  NodeDataset& data = task.data;
  normalise_rows(data);
  check(!data.splits.empty(), "{}: the files give no split into training, validation and test nodes", o.dataset);
  task.graph = Graph::from_coo(data.src, data.dst, data.num_nodes, data.num_nodes);
  if (data.sparse_features())
    task.sparse = {Graph::from_csr(data.feature_rowptr, data.feature_col, data.num_features), data.feature_values};
  manifest.data_sha256 = data.sha256;
  std::printf("%s: %lld nodes, %lld directed edges, %lld features, %lld classes; %lld/%lld/%lld train/valid/test\n",
              data.name.c_str(), (long long)data.num_nodes, (long long)data.num_directed_edges(),
              (long long)data.num_features, (long long)data.num_classes, (long long)data.splits[0].train.numel(),
              (long long)data.splits[0].valid.numel(), (long long)data.splits[0].test.numel());
  std::printf("%s, recipe %s, %d run%s of %d epochs, seed %llu, %d thread%s, %s\n", o.model.c_str(), o.recipe.c_str(), o.runs,
              o.runs == 1 ? "" : "s", o.epochs, (unsigned long long)o.seed, threads(), threads() == 1 ? "" : "s",
              name(active_isa()));

  TrainingResult result{.metric = "accuracy"};
  Progress progress(data.name, int64_t(o.runs) * o.epochs);
  for (int run = 0; run < o.runs && !interrupted; ++run)
    train_once(o, task, o.seed + uint64_t(run), progress, int64_t(run) * o.epochs, result);
  progress.finish();

  const auto show = [&](const char* split, const std::vector<double>& runs) {
    if (runs.empty()) return;
    const Summary summary(runs);
    std::printf("%-5s accuracy %6.2f %%", split, 100 * summary.mean);
    if (runs.size() > 1) std::printf(" +- %.2f over %zu runs", 100 * summary.std, runs.size());
    std::printf("\n");
  };
  show("train", result.train);
  show("valid", result.valid);
  show("test", result.test);
  if (!result.epoch_seconds.empty())
    std::printf("epoch %.3f ms (median)\n", 1e3 * median(result.epoch_seconds));
  if (!o.json.empty()) write_result(o.json, manifest, result);
  return interrupted ? kInterrupted : kDone;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Trains a graph neural network to classify the nodes of a graph.", "tessera-train-node");
  app.footer(
      "Examples:\n"
      "  tessera-train-node                                   Zachary's karate club, built in\n"
      "  tessera-train-node --dataset cora --data ../shared/data --runs 10 --json cora.json\n"
      "  tessera-train-node --dataset citeseer --data DIR --hidden 32 --dropout 0.6 --seed 7\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.");
  app.set_version_flag("--version", std::string("tessera ") + version());
  app.add_option("--dataset", o.dataset, "karate, cora, citeseer or pubmed")->capture_default_str();
  app.add_option("--data", o.data, "folder in which to look for the data set")->capture_default_str();
  app.add_option("--model", o.model, "architecture")->check(CLI::IsMember({"gcn"}))->capture_default_str();
  app.add_option("--recipe", o.recipe, "published protocol that sets what the options below do not")
      ->check(CLI::IsMember({"kipf"}))
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "epochs (kipf: 200)")->check(CLI::Range(1, 1000000));
  app.add_option("--hidden", o.hidden, "width of the hidden layers (kipf: 16)")->check(CLI::Range(1, 65536));
  app.add_option("--layers", o.layers, "layers (kipf: 2)")->check(CLI::Range(1, 64));
  app.add_option("--lr", o.lr, "learning rate (kipf: 0.01)")->check(CLI::NonNegativeNumber);
  app.add_option("--dropout", o.dropout, "dropout on the input of every layer (kipf: 0.5)")->check(CLI::Range(0.0, 1.0));
  app.add_option("--weight-decay", o.weight_decay, "L2 on the first layer (kipf: 0.0005)")->check(CLI::NonNegativeNumber);
  app.add_option("--runs", o.runs, "repetitions, with seeds seed, seed + 1, ...")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "seed of the first run")->capture_default_str();
  app.add_option("--threads", o.threads, "threads (default: all CPUs)")->check(CLI::Range(1, 4096));
  app.add_option("--device", o.device, "device")->check(CLI::IsMember({"cpu"}))->capture_default_str();
  app.add_option("--json", o.json, "file for the full result and the manifest");
  return run_program(app, argc, argv, [&] { return train_node(o, command_line(argc, argv)); });
}
