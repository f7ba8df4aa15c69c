#include "tessera/apps/support/graph_options.h"

#include <algorithm>
#include <cmath>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/graph_model.h"
#include "tessera/apps/support/learning_rate.h"
#include "tessera/apps/support/metric.h"
#include "tessera/apps/support/program.h"
#include "tessera/datasets/graph_set/folds.h"

namespace tessera::apps {
namespace {

struct Recipe {
  const char *name, *model;
  int64_t epochs, batch, hidden, layers, patience;
  double lr, weight_decay, dropout, ratio;
  const char* schedule;
  const char *features, *split, *stop_on, *grid_choice;
};

// pyg-kernel: PyG's benchmark/kernel (Fey and Lenssen 2019). errica: Errica et al., ICLR 2020, GIN's settings. sagpool: Lee
// et al. 2019, the authors' program. ogb: the Open Graph Benchmark's examples/graphproppred/mol.
constexpr Recipe kRecipes[] = {
    {"pyg-kernel", "gcn", 100, 128, 32, 3, 0, 0.01, 0, 0.5, 0.8, "step", "usual", "folds", "loss", "set"},
    {"errica", "gin", 1000, 128, 64, 5, 500, 0.01, 0, 0.5, 0.8, "step", "all", "folds:10%", "loss", "fold"},
    {"sagpool", "sagpool-hierarchical", 100000, 128, 128, 3, 50, 0.0005, 1e-4, 0.5, 0.5, "none", "usual", "random:80%/10%",
     "loss", "set"},
    {"ogb", "gin", 100, 32, 300, 5, 0, 0.001, 0, 0.5, 0.8, "none", "usual", "given", "metric", "set"},
};

constexpr int64_t kGridLayers = 5;
constexpr int64_t kGridHidden[] = {16, 32, 64, 128};

std::vector<std::string> recipe_names() {
  std::vector<std::string> out;
  for (const Recipe& recipe : kRecipes) out.emplace_back(recipe.name);
  return out;
}

[[noreturn]] void fail_split(const std::string& text) {
  fail<UsageError>(
      "--split {}: needs to be folds, given, a number, each with :10% to hold out validation graphs, or random:80%/10%",
      text);
}

double share_in(const std::string& text, const std::string& whole) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  if (used == 0 || used + 1 != text.size() || text.back() != '%' || !(value >= 0 && value <= 100)) fail_split(whole);
  return value / 100;
}

/// "folds", "given" or a number, and the share that is held out; or the two shares of a random split.
struct SplitPlan {
  std::string kind;
  double first = 0, second = 0;
};

SplitPlan plan_of(const std::string& text) {
  const size_t colon = text.find(':');
  SplitPlan plan{.kind = text.substr(0, colon)};
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (plan.kind == "random") {
    const size_t slash = rest.find('/');
    plan.first = share_in(rest.substr(0, slash), text);
    plan.second = share_in(slash == std::string::npos ? "" : rest.substr(slash + 1), text);
    check<UsageError>(plan.first + plan.second <= 1, "--split {}: the shares are more than 100 % together", text);
    return plan;
  }
  const bool number = !plan.kind.empty() && plan.kind.size() < 10 &&
                      std::all_of(plan.kind.begin(), plan.kind.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (plan.kind != "folds" && plan.kind != "given" && !number) fail_split(text);
  if (colon != std::string::npos) plan.first = share_in(rest, text);
  return plan;
}

/// Labels to keep the shares of: the classes, or one for all.
Tensor strata_of(const GraphSet& set) {
  if (set.task == GraphTask::classes) return set.y;
  Tensor out = Tensor::empty({set.num_graphs()}, DType::i32);
  std::fill_n(out.mutable_data<int32_t>(), set.num_graphs(), 0);
  return out;
}

std::string counts_of(const GraphSet& set, const GraphSplit& split) {
  const Tensor* parts[] = {&split.train, &split.valid, &split.test};
  const auto triple = [](int64_t a, int64_t b, int64_t c) { return to_text(a) + "/" + to_text(b) + "/" + to_text(c); };
  std::string out = triple(split.train.numel(), split.valid.numel(), split.test.numel()) + " train/valid/test graphs";
  if (set.task != GraphTask::classes) return out;
  std::vector<std::array<int64_t, 3>> counts(static_cast<size_t>(set.outputs));
  for (size_t p = 0; p < 3; ++p)
    for (const int32_t g : parts[p]->span<int32_t>()) ++counts[size_t(set.y.data<int32_t>()[g])][p];
  constexpr size_t kMostClasses = 12;
  for (size_t c = 0; c < counts.size() && c < kMostClasses; ++c)
    out += (c == 0 ? " (class " : ", class ") + set.class_names[c] + ": " + triple(counts[c][0], counts[c][1], counts[c][2]);
  if (counts.size() > kMostClasses) out += ", ...";
  return out + ")";
}

bool needs_validation(const GraphOptions& o) {
  return o.patience > 0 || o.take == "best" || o.schedule == "plateau" || o.grid;
}

std::string default_metric(const GraphSet& set) {
  if (!set.metric.empty()) return set.metric;
  return set.task == GraphTask::classes ? "accuracy" : set.task == GraphTask::binary ? "roc-auc" : "rmse";
}

void check_metric_fits(const GraphOptions& o, const GraphSet& set) {
  const bool share = is_share(o.metric), regression = set.task == GraphTask::regression;
  check<UsageError>(share != regression, "--metric {} is of {} but {} has {}", o.metric, share ? "classes" : "numbers",
                    set.name, regression ? "numbers to tell" : "classes");
  check<UsageError>(set.task != GraphTask::classes || o.metric == "accuracy" || set.outputs == 2,
                    "--metric {} needs 2 classes but {} has {}", o.metric, set.name, set.outputs);
}

GraphFeatures features_of(const std::string& name) {
  using enum GraphFeatures;
  return name == "labels"       ? labels
         : name == "attributes" ? attributes
         : name == "all"        ? all
         : name == "degree"     ? degree
         : name == "constant"   ? constant
                                : usual;
}

}  // namespace

void add_graph_data_options(CLI::App& app, GraphOptions& o) {
  app.add_option("--dataset", o.dataset,
                 "set of graphs by name (PROTEINS, ogbg-molhiv, ...), or the path of its folder or zip")
      ->required()
      ->type_name("NAME")
      ->group("Data");
  app.add_option("--data", o.data,
                 "folder that holds the set, or its family folders tu, tu-gin, ogb [this folder, then $TESSERA_DATA or "
                 "~/.cache/tessera]")
      ->type_name("DIR")
      ->group("Data");
  app.add_option(
         "--features", o.features,
         "features of nodes: usual (labels, else attributes, else degrees), labels, attributes, all, degree, constant")
      ->check(one_of({"usual", "labels", "attributes", "all", "degree", "constant"}))
      ->type_name("KIND")
      ->group("Data");
  app.add_option(
         "--split", o.split,
         "folds (each fold is tested on once, the one before it validates), given (the set's own), a number (that one "
         "of them), each with :10% to hold out that share of the training graphs for validation, or random:80%/10% "
         "(drawn anew in each run)")
      ->type_name("SPLIT")
      ->group("Data");
  app.add_option("--folds", o.folds, "folds of --split folds, each with its share of every class (10)")
      ->check(in_range(2, 100000))
      ->type_name("N")
      ->group("Data");
  app.add_option("--fold-seed", o.fold_seed, "seed of the folds, as scikit-learn's StratifiedKFold takes it")
      ->check(in_range(0, 4294967295.0))
      ->capture_default_str()
      ->type_name("N")
      ->group("Data");
}

void add_graph_training_options(CLI::App& app, GraphOptions& o) {
  std::string names;
  for (const std::string& name : graph_model_names()) names += (names.empty() ? "" : ", ") + name;
  app.add_option("--model", o.model, "architecture: " + names)
      ->check(one_of(graph_model_names()))
      ->type_name("NAME")
      ->group("Model");
  app.add_option("--hidden", o.hidden, "width of the hidden layers")
      ->check(in_range(1, 65536))
      ->type_name("N")
      ->group("Model");
  app.add_option("--layers", o.layers, "convolutions")->check(in_range(1, 64))->type_name("N")->group("Model");
  app.add_option("--dropout", o.dropout, "dropout")->check(in_range(0.0, 1.0))->type_name("P")->group("Model");
  app.add_option("--ratio", o.ratio, "share of the nodes that a pooling keeps; 1 or more: their count")
      ->check(in_range(1e-6, 1e9))
      ->type_name("R")
      ->group("Model");
  app.add_flag("--grid", o.grid,
               "train every cell of 1 to 5 layers by 16, 32, 64, 128 hidden, report the one with the least validation loss")
      ->group("Model");
  app.add_option("--grid-choice", o.grid_choice, "one cell for the set, or one for each fold: set, fold")
      ->check(one_of({"set", "fold"}))
      ->type_name("WHAT")
      ->group("Model");

  app.add_option(
         "--recipe", o.recipe,
         "protocol that sets every option left out: pyg-kernel (10 folds, test at the least validation loss), errica (10 "
         "folds, a tenth held out, early stopping), sagpool (random 80/10/10, early stopping), ogb (the split given, test "
         "at the best validation score); default: ogb for OGB's sets, else pyg-kernel")
      ->check(one_of(recipe_names()))
      ->type_name("NAME")
      ->group("Training");
  app.add_option("--batch", o.batch, "graphs in a step")->check(in_range(1, 1e9))->type_name("N")->group("Training");
  add_rate_options(app, o);
  app.add_option(
         "--class-weights", o.class_weights,
         "weights in the loss: none, balanced (each class counts the same), or numbers with commas: of each class, or "
         "of the yes in each task (none)")
      ->type_name("WHAT")
      ->group("Training");
  app.add_option("--patience", o.patience, "stop after this many epochs without a better validation; 0: never")
      ->check(in_range(0, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option("--stop-on", o.stop_on, "what must get better: loss, metric")
      ->check(one_of({"loss", "metric"}))
      ->type_name("WHAT")
      ->group("Training");
  app.add_option("--take", o.take, "weights that are tested: best (of the epoch with the best validation), last")
      ->check(one_of({"best", "last"}))
      ->type_name("WHICH")
      ->group("Training");
  app.add_option("--metric", o.metric,
                 "what is measured: accuracy, roc-auc, ap (two classes, tasks), rmse, mae (numbers); default: the set's own")
      ->check(one_of({"accuracy", "roc-auc", "ap", "rmse", "mae"}))
      ->type_name("NAME")
      ->group("Training");
  add_run_options(app, o);
}

void fill_from_recipe(GraphOptions& o, GraphSet& set) {
  const bool molecules = set.x.defined() && set.x.dtype() == DType::i64;
  if (o.recipe.empty()) o.recipe = set.metric.empty() ? "pyg-kernel" : "ogb";
  const Recipe& r =
      *std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](const Recipe& x) { return o.recipe == x.name; });
  const auto fill = [](auto& option, auto value) {
    if (option < 0) option = value;
  };
  const auto fill_text = [](std::string& option, const std::string& value) {
    if (option.empty()) option = value;
  };
  fill_text(o.model, molecules && std::string(r.model).starts_with("sagpool") ? "gin" : r.model);
  check_graph_model(o.model, molecules);
  check<UsageError>(o.layers < 0 || has_layers(o.model), "--layers {}: --model {} has three", o.layers, o.model);
  check<UsageError>(!o.grid || has_layers(o.model), "--grid tries layers, of which --model {} always has three", o.model);
  check<UsageError>(!o.grid || (o.layers < 0 && o.hidden < 0), "--grid tries layers and widths: drop --layers and --hidden");
  check<UsageError>(o.ratio < 0 || has_ratio(o.model), "--ratio {}: --model {} has no pooling", o.ratio, o.model);
  check<UsageError>(o.grid_choice.empty() || o.grid, "--grid-choice goes with --grid");
  fill_text(o.features, r.features);
  try {
    const bool bare = !set.node_labels.defined() && !set.node_attributes.defined();
    choose_features(set, features_of(molecules || (o.features == "all" && bare) ? "usual" : o.features));
  } catch (const InvalidArgument& error) {
    throw UsageError(std::string("--features ") + o.features + ": " + error.what());
  }
  fill(o.epochs, r.epochs);
  fill(o.batch, r.batch);
  fill(o.hidden, r.hidden);
  fill(o.layers, r.layers);
  fill(o.dropout, r.dropout);
  fill(o.ratio, r.ratio);
  fill(o.lr, r.lr);
  fill(o.weight_decay, r.weight_decay);
  fill(o.patience, r.patience);
  if (o.schedule.empty()) {
    o.schedule = r.schedule;
    if (o.schedule == "step") {
      fill(o.lr_every, 50);
      fill(o.lr_factor, 0.5);
    }
  }
  fill_text(o.split, set.splits.empty() && std::string(r.split) == "given" ? "random:80%/10%" : r.split);
  const SplitPlan plan = plan_of(o.split);
  check<UsageError>(o.folds < 0 || plan.kind == "folds", "--folds {} goes with --split folds, not {}", o.folds, o.split);
  fill(o.folds, 10);
  fill_text(o.stop_on, r.stop_on);
  fill_text(o.grid_choice, r.grid_choice);
  fill_text(o.class_weights, "none");
  fill_text(o.metric, default_metric(set));
  fill_text(o.take, "best");
  check_metric_fits(o, set);
  check<UsageError>(set.task != GraphTask::regression || o.class_weights == "none",
                    "--class-weights {}: {} has numbers to tell, not classes", o.class_weights, set.name);
  fill_schedule(o);
}

std::map<std::string, std::string> deciding_options(const GraphOptions& o) {
  std::map<std::string, std::string> out = schedule_options(o);
  out.insert({{"--dataset", o.dataset},
              {"--features", o.features},
              {"--split", o.split},
              {"--model", o.model},
              {"--hidden", o.grid ? "grid" : to_text(o.hidden)},
              {"--dropout", to_text(o.dropout)},
              {"--batch", to_text(o.batch)},
              {"--lr", to_text(o.lr)},
              {"--weight-decay", to_text(o.weight_decay)},
              {"--class-weights", o.class_weights},
              {"--epochs", to_text(o.epochs)},
              {"--patience", to_text(o.patience)},
              {"--metric", o.metric},
              {"--stop-on", o.stop_on},
              {"--take", o.take},
              {"--seed", to_text(o.seed)}});
  if (has_layers(o.model)) out["--layers"] = o.grid ? "grid" : to_text(o.layers);
  if (has_ratio(o.model)) out["--ratio"] = to_text(o.ratio);
  if (o.grid) out["--grid-choice"] = o.grid_choice;
  if (plan_of(o.split).kind == "folds") {
    out["--folds"] = to_text(o.folds);
    out["--fold-seed"] = to_text(o.fold_seed);
  }
  return out;
}

int64_t cells_of(const GraphOptions& o) { return o.grid ? kGridLayers * int64_t(std::size(kGridHidden)) : 1; }

GraphOptions options_of_cell(const GraphOptions& o, int64_t cell) {
  GraphOptions out = o;
  if (!o.grid) return out;
  out.grid = false;
  out.layers = cell / int64_t(std::size(kGridHidden)) + 1;
  out.hidden = kGridHidden[cell % int64_t(std::size(kGridHidden))];
  return out;
}

int64_t folds_of(const GraphOptions& o, const GraphSet& set) {
  const std::string kind = plan_of(o.split).kind;
  if (kind == "folds") return o.folds;
  return kind == "given" ? std::max<int64_t>(1, int64_t(set.splits.size())) : 1;
}

int64_t units_of(const GraphOptions& o, const GraphSet& set) { return cells_of(o) * o.runs * folds_of(o, set); }

GraphUnit unit_of(const GraphOptions& o, const GraphSet& set, int64_t unit) {
  const int64_t folds = folds_of(o, set);
  return {unit / folds / o.runs, unit / folds % o.runs, unit % folds};
}

std::string name_of_unit(const GraphOptions& o, const GraphSet& set, int64_t unit) {
  const GraphUnit u = unit_of(o, set, unit);
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (o.grid) {
    const GraphOptions cell = options_of_cell(o, u.cell);
    add(to_text(cell.layers) + " x " + to_text(cell.hidden));
  }
  if (o.runs > 1) add("run " + to_text(u.run));
  if (folds_of(o, set) > 1) add("fold " + to_text(u.fold));
  return out;
}

GraphSplit split_of_unit(const GraphOptions& o, const GraphSet& set, const GraphUnit& unit) {
  const SplitPlan plan = plan_of(o.split);
  const uint64_t seed = o.seed + uint64_t(unit.run);
  GraphSplit split;
  if (plan.kind == "random") {
    split = split_at_random(set.num_graphs(), plan.first, plan.second, seed);
  } else if (plan.kind == "folds") {
    try {
      split = split_of_fold(stratified_folds(strata_of(set), o.folds, uint32_t(o.fold_seed)), o.folds, unit.fold);
    } catch (const InvalidArgument& error) {
      throw UsageError("--folds " + to_text(o.folds) + ": " + error.what());
    }
    if (plan.first > 0) {  // the fold before is for training too
      std::vector<int32_t> train = split.train.to_vector<int32_t>();
      for (const int32_t g : split.valid.span<int32_t>()) train.push_back(g);
      std::sort(train.begin(), train.end());
      split.train = Tensor::from(train, {int64_t(train.size())});
      split.valid = Tensor::empty({0}, DType::i32);
    }
  } else {
    const int64_t count = int64_t(set.splits.size());
    check<UsageError>(count > 0, "--split {}: {} comes without a split, use --split folds or random:80%/10%", o.split,
                      set.name);
    const int64_t number = plan.kind == "given" ? unit.fold : std::stoll(plan.kind);
    check<UsageError>(number < count, "--split {}: {} has {} split{}, 0 is the first", o.split, set.name, count,
                      count == 1 ? "" : "s");
    split = set.splits[size_t(number)];
  }
  if (plan.kind != "random" && plan.first > 0) {
    check<UsageError>(split.valid.numel() == 0, "--split {}: the split has {} already", o.split, counts_of(set, split));
    hold_out(split, strata_of(set), plan.first, seed);
  }
  check<UsageError>(split.train.numel() > 0, "nothing to train on: the split has {}", counts_of(set, split));
  check<UsageError>(!needs_validation(o) || split.valid.numel() > 0,
                    "{} needs validation graphs but the split has {}; use {} or hold some out with --split {}",
                    o.patience > 0            ? "early stopping"
                    : o.schedule == "plateau" ? "--schedule plateau"
                    : o.grid                  ? "--grid"
                                              : "--take best",
                    counts_of(set, split),
                    o.patience > 0            ? "--patience 0 --take last"
                    : o.schedule == "plateau" ? "another schedule"
                    : o.grid                  ? "no --grid"
                                              : "--take last",
                    plan.kind == "random" ? "random:80%/10%" : plan.kind + ":10%");
  return split;
}

Tensor class_weights_of(const GraphOptions& o, const GraphSet& set, const GraphSplit& split) {
  if (o.class_weights == "none") return {};
  const bool classes = set.task == GraphTask::classes;
  Tensor out = Tensor::empty({set.outputs});
  float* weights = out.mutable_data<float>();
  if (o.class_weights != "balanced") {
    int64_t count = 0;
    size_t begin = 0;
    for (size_t end = 0; end != std::string::npos; begin = end + 1, ++count) {
      end = o.class_weights.find(',', begin);
      const std::string text = o.class_weights.substr(begin, end == std::string::npos ? end : end - begin);
      size_t used = 0;
      double value = -1;
      try {
        value = std::stod(text, &used);
      } catch (const std::exception&) {
      }
      check<UsageError>(used == text.size() && std::isfinite(value) && value >= 0,
                        "--class-weights {}: needs to be none, balanced, or numbers with commas", o.class_weights);
      if (count < set.outputs) weights[count] = float(value);
    }
    check<UsageError>(count == set.outputs, "--class-weights {}: has {} numbers but {} has {} {}", o.class_weights, count,
                      set.name, set.outputs, classes ? "classes" : "tasks");
    return out;
  }
  std::vector<int64_t> yes(static_cast<size_t>(set.outputs)), no(yes.size());
  for (const int32_t g : split.train.span<int32_t>())
    for (int64_t c = 0; c < set.outputs; ++c) {
      const float value = classes ? float(set.y.data<int32_t>()[g] == c) : set.y.data<float>()[int64_t(g) * set.outputs + c];
      if (!std::isnan(value)) ++(value > 0 ? yes : no)[size_t(c)];
    }
  for (size_t c = 0; c < yes.size(); ++c) {
    check<UsageError>(yes[c] > 0, "--class-weights balanced: {} {} has 0 of {} training graphs", classes ? "class" : "task",
                      classes ? set.class_names[c] : to_text(int64_t(c)), yes[c] + no[c]);
    weights[c] = float(classes ? double(yes[c] + no[c]) / double(set.outputs * yes[c]) : double(no[c]) / double(yes[c]));
  }
  return out;
}

std::vector<std::string> check_splits(const GraphOptions& o, const GraphSet& set) {
  std::vector<std::string> lines;
  const int64_t folds = folds_of(o, set), runs = plan_of(o.split).kind == "random" ? std::min<int64_t>(o.runs, 100) : 1;
  for (int64_t unit = 0; unit < runs * folds; ++unit) {
    const GraphUnit u = unit_of(o, set, unit);
    const GraphSplit split = split_of_unit(o, set, u);
    (void)class_weights_of(o, set, split);
    if (o.metric != "roc-auc" && o.metric != "ap") continue;
    const std::pair<const char*, const Tensor*> parts[] = {
        {"training", &split.train}, {"validation", &split.valid}, {"test", &split.test}};
    for (const auto& [part, rows] : parts) {
      bool defined = rows->numel() == 0;
      for (int64_t c = 0; c < set.outputs && !defined; ++c) {
        bool yes = false, no = false;
        for (const int32_t g : rows->span<int32_t>()) {
          const float value = set.task == GraphTask::classes ? float(set.y.data<int32_t>()[g])
                                                             : set.y.data<float>()[int64_t(g) * set.outputs + c];
          yes = yes || value > 0;
          no = no || value == 0;
        }
        defined = yes && no;
      }
      if (defined) continue;
      const std::string name = name_of_unit(o, set, unit);
      const std::string line = (name.empty() ? "" : name + ": ") + "the " + to_text(rows->numel()) + " " + part +
                               " graphs are all of one class, so their " + metric_title(o.metric) + " is not defined";
      check<UsageError>(o.stop_on != "metric" || rows != &split.valid || !needs_validation(o), "{}; --stop-on loss would do",
                        line);
      lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace tessera::apps
