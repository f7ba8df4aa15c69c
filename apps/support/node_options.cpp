#include "tessera/apps/support/node_options.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/learning_rate.h"
#include "tessera/apps/support/node_model.h"
#include "tessera/apps/support/program.h"
#include "tessera/apps/support/score.h"
#include "tessera/core/error.h"
#include "tessera/datasets/graph/find.h"
#include "tessera/datasets/graph/splits.h"

namespace tessera::apps {
namespace {

/// A protocol. `decay_on`: first-layer (weight and bias), first-weight, all. `random_split` stands for --split random.
struct Recipe {
  const char* name;
  int64_t epochs, hidden, layers, patience, stop_window;
  double lr, dropout, weight_decay;
  const char *decay_on, *stop_on, *features, *component, *random_split;
  bool split_at_random;  // also where the files give a split
};

// kipf: Kipf and Welling, ICLR 2017. shchur: Shchur et al. 2018, the tuned GCN of the gnn-benchmark repository; its stop
// rule watches validation loss plus L2 term. pyg-citation: benchmark/citation of PyTorch Geometric (arXiv 1903.02428).
// platonov: Platonov et al., ICLR 2023. plain: no publication, settings that do no harm.
constexpr Recipe kRecipes[] = {
    {"kipf", 200, 16, 2, 0, 0, 0.01, 0.5, 5e-4, "first-layer", "loss", "rows", "all", "20/30", false},
    {"shchur", 100000, 64, 2, 50, 0, 0.01, 0.8, 1e-3, "first-weight", "objective", "binary", "largest", "20/30", true},
    {"pyg-citation", 200, 16, 2, 0, 10, 0.01, 0.5, 5e-4, "all", "loss", "rows", "all", "20/500/1000", false},
    {"platonov", 1000, 512, 5, 1000, 0, 3e-5, 0.2, 0, "all", "metric", "raw", "all", "50%/25%", false},
    {"plain", 1000, 64, 2, 100, 0, 0.01, 0.5, 5e-4, "all", "loss", "raw", "all", "60%/20%", false},
};

/// What a recipe (empty: every one) sets for a model (empty: all) on a data set (empty: all) before its own row; the first
/// that names a flag counts, and a flag that the model does not have is passed over.
struct Setting {
  std::string_view recipe, model, dataset, flags;
};
constexpr Setting kSettings[] = {
    {"pyg-citation", "gat", "pubmed", "--lr 0.01 --weight-decay 0.001 --out-heads 8"},
    {"pyg-citation", "gat", "", "--lr 0.005 --dropout 0.6 --epochs 1000 --stop-window 100"},
    {"pyg-citation", "sgc", "cora", "--hops 3"},
    {"pyg-citation", "sgc", "citeseer", "--weight-decay 0.005"},
    {"pyg-citation", "sgc", "", "--lr 0.1 --features raw"},
    {"pyg-citation", "appnp", "", "--hidden 64"},
    {"pyg-citation", "", "", "--input-dropout 0"},
    {"", "gat", "", "--hidden 8 --heads 8 --out-heads 1"},
    {"", "sgc", "", "--hops 2"},
    {"", "appnp", "", "--hops 10 --alpha 0.1"},
    {"", "gcn2", "", "--hidden 64 --layers 16 --alpha 0.1 --theta 0.5"},
    {"", "deeper-gcn", "", "--hidden 64 --layers 7"},
    {"", "", "", "--norm none"},
};

const NodeFlag kFlags[] = {
    {"--features", &NodeOptions::features},
    {"--component", &NodeOptions::component},
    {"--split", &NodeOptions::split},
    {"--hidden", &NodeOptions::hidden},
    {"--layers", &NodeOptions::layers},
    {"--dropout", &NodeOptions::dropout},
    {"--input-dropout", &NodeOptions::input_dropout},
    {"--heads", &NodeOptions::heads},
    {"--out-heads", &NodeOptions::out_heads},
    {"--hops", &NodeOptions::hops},
    {"--alpha", &NodeOptions::alpha},
    {"--theta", &NodeOptions::theta},
    {"--norm", &NodeOptions::norm},
    {"--lr", &NodeOptions::lr},
    {"--weight-decay", &NodeOptions::weight_decay},
    {"--decay-on", &NodeOptions::decay_on},
    {"--epochs", &NodeOptions::epochs},
    {"--patience", &NodeOptions::patience},
    {"--stop-window", &NodeOptions::stop_window},
    {"--metric", &NodeOptions::metric},
    {"--stop-on", &NodeOptions::stop_on},
};

void apply_settings(NodeOptions& o, const NodeDataset& data) {
  for (const Setting& setting : kSettings) {
    if (!setting.recipe.empty() && setting.recipe != o.recipe) continue;
    if (!setting.model.empty() && setting.model != o.model) continue;
    if (!setting.dataset.empty() && (setting.dataset != data.name || !o.edges.empty())) continue;
    std::istringstream words{std::string(setting.flags)};
    for (std::string flag, value; words >> flag >> value;)
      if (node_flag(flag).open(o) && !missing_in_model(o, flag))
        check<InternalError>(node_flag(flag).set(o, value), "the setting {} {} is not a value", flag, value);
  }
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> out;
  for (const Recipe& recipe : kRecipes) out.push_back(recipe.name);
  return out;
}

double parse_number(const std::string& text, const std::string& whole) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  check<UsageError>(used == text.size() && !text.empty() && value >= 0,
                    "--split {}: needs to be given, random, random:20/30 (nodes of each class), random:20/500/1000, "
                    "random:60%/20% (shares) "
                    "or a number",
                    whole);
  return value;
}

/// "20/30" or "60%/20%".
NodeSplit random_split(const NodeDataset& data, const std::string& text, uint64_t seed) {
  const size_t slash = text.find('/');
  std::string first = text.substr(0, slash), second = slash == std::string::npos ? "" : text.substr(slash + 1);
  const bool shares = !first.empty() && first.back() == '%';
  if (shares) {
    first.pop_back();
    if (!second.empty() && second.back() == '%') second.pop_back();
  }
  const std::string whole = "random:" + text;
  if (const size_t third = second.find('/'); third != std::string::npos && !shares)
    return split_planetoid(data, int64_t(parse_number(first, whole)), int64_t(parse_number(second.substr(0, third), whole)),
                           int64_t(parse_number(second.substr(third + 1), whole)), seed);
  const double train = parse_number(first, whole), valid = parse_number(second, whole);
  if (!shares) return split_per_class(data, int64_t(train), int64_t(valid), seed);
  check<UsageError>(train + valid <= 100, "--split {}: the shares are more than 100 % together", whole);
  return split_shares(data, train / 100, valid / 100, seed);
}

std::string counts_of(const NodeDataset& data, const NodeSplit& split) {
  const Tensor* parts[] = {&split.train, &split.valid, &split.test};
  std::vector<std::array<int64_t, 3>> counts(static_cast<size_t>(data.num_classes));
  for (int p = 0; p < 3; ++p)
    for (const int32_t i : parts[p]->span<int32_t>())
      if (const int32_t y = data.labels.data<int32_t>()[i]; y >= 0) ++counts[size_t(y)][size_t(p)];
  const auto triple = [](int64_t a, int64_t b, int64_t c) {
    return std::to_string(a) + "/" + std::to_string(b) + "/" + std::to_string(c);
  };
  std::string out = triple(split.train.numel(), split.valid.numel(), split.test.numel()) + " train/valid/test nodes";
  constexpr size_t kMostClasses = 12;
  for (size_t c = 0; c < counts.size() && c < kMostClasses; ++c)
    out += (c == 0 ? " (class " : ", class ") + std::to_string(c) + ": " + triple(counts[c][0], counts[c][1], counts[c][2]);
  if (counts.size() > kMostClasses) out += ", ...";
  return out + (counts.empty() ? "" : ")");
}

}  // namespace

bool NodeFlag::open(const NodeOptions& o) const {
  if (const auto* integer = std::get_if<int64_t NodeOptions::*>(&member)) return o.*(*integer) < 0;
  if (const auto* number = std::get_if<double NodeOptions::*>(&member)) return o.*(*number) < 0;
  return (o.*std::get<std::string NodeOptions::*>(member)).empty();
}

std::string NodeFlag::text(const NodeOptions& o) const {
  return std::visit([&](auto m) { return to_text(o.*m); }, member);
}

bool NodeFlag::set(NodeOptions& o, const std::string& text) const {
  if (const auto* words = std::get_if<std::string NodeOptions::*>(&member)) {
    o.*(*words) = text;
    return !text.empty();
  }
  char* end = nullptr;
  double value = 0;
  if (const auto* integer = std::get_if<int64_t NodeOptions::*>(&member))
    value = double(o.*(*integer) = std::strtoll(text.c_str(), &end, 10));
  else
    value = o.*std::get<double NodeOptions::*>(member) = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && value >= 0;
}

const NodeFlag& node_flag(std::string_view name) {
  for (const NodeFlag& flag : kFlags)
    if (name == flag.name) return flag;
  fail<InternalError>("{} is no option of a model or of training", std::string(name));
}

void check_model_options(const NodeOptions& o) {
  for (const NodeFlag& flag : kFlags)
    check<UsageError>(flag.open(o) || !missing_in_model(o, flag.name), "{} {}: the model {} has no such option", flag.name,
                      flag.text(o), o.model);
}

void add_data_options(CLI::App& app, NodeOptions& o) {
  app.add_option("--dataset", o.dataset, "data set by name; karate is built in")
      ->capture_default_str()
      ->each([&o](const std::string&) { o.dataset_given = true; })
      ->type_name("NAME")
      ->group("Data");
  add_data_folder_options(app, o.data, o.offline);
  app.add_option("--edges", o.edges,
                 "your own graph: a text file, plain or gzip, with the two node ids of an edge in each line")
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--nodes", o.nodes, "its table of nodes: id, features, and optionally label and split (train, valid, test)")
      ->type_name("FILE")
      ->group("Data");
  app.add_option("--id-column", o.id_column, "column of the ids in --nodes (id, node, node_id, name, else the first)")
      ->type_name("NAME")
      ->group("Data");
  app.add_option("--label-column", o.label_column,
                 "column of the labels (label, class, y, target; without a header the last)")
      ->type_name("NAME")
      ->group("Data");
  app.add_option("--split-column", o.split_column, "column of the split (split)")->type_name("NAME")->group("Data");
  app.add_option("--features", o.features, "features: raw, rows (each row sums to 1), binary (every non-zero is 1)")
      ->check(one_of({"raw", "rows", "binary"}))
      ->type_name("KIND")
      ->group("Data");
}

void add_training_options(CLI::App& app, NodeOptions& o) {
  app.add_option("--component", o.component, "nodes to keep: all, largest (connected component)")
      ->check(one_of({"all", "largest"}))
      ->type_name("KIND")
      ->group("Data");
  app.add_option(
         "--split", o.split,
         "given (run i takes the set's split i), a number (that split), random, random:20/30 (train and validation nodes "
         "of each class), random:20/500/1000 (training nodes of each class, validation and test nodes of all), "
         "random:60%/20% "
         "(shares of each class)")
      ->type_name("SPLIT")
      ->group("Data");

  add_model_options(app, o);
  app.add_option("--dropout", o.dropout, "dropout on the input of every layer")
      ->check(in_range(0.0, 1.0))
      ->type_name("P")
      ->group("Model");
  app.add_option("--input-dropout", o.input_dropout, "gcn, sage, gin: dropout on the features, where it differs")
      ->check(in_range(0.0, 1.0))
      ->type_name("P")
      ->group("Model");

  app.add_option(
         "--recipe", o.recipe,
         "protocol that sets every option left out: kipf (citation sets), shchur (20 + 30 random nodes of each class, early "
         "stopping), pyg-citation (PyTorch Geometric's benchmark: the epoch of the lowest validation loss), platonov (deep "
         "models on heterophilous sets), plain; default: by the data set")
      ->check(one_of(recipe_names()))
      ->type_name("NAME")
      ->group("Training");
  add_rate_options(app, o);
  app.add_option("--decay-on", o.decay_on, "what it is on: first-layer, first-weight, all")
      ->check(one_of({"first-layer", "first-weight", "all"}))
      ->type_name("WHAT")
      ->group("Training");
  app.add_option("--patience", o.patience,
                 "stop after this many epochs without a better validation, take the best weights; 0: never")
      ->check(in_range(0, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option("--stop-window", o.stop_window,
                 "past half of --epochs, stop when the validation loss is above the mean of so many epochs before; take the "
                 "best weights; 0: never")
      ->check(in_range(0, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option(
         "--metric", o.metric,
         "what is measured: accuracy, roc-auc (two classes); default: roc-auc for minesweeper, tolokers and questions, "
         "as published, else accuracy")
      ->check(one_of({"accuracy", "roc-auc"}))
      ->type_name("NAME")
      ->group("Training");
  app.add_option("--stop-on", o.stop_on, "what must get better: loss, metric, objective (loss and L2 term)")
      ->check(one_of({"loss", "metric", "objective"}))
      ->type_name("WHAT")
      ->group("Training");
  add_run_options(app, o);
}

std::string default_recipe(const std::string& dataset_name, const NodeDataset& data) {
  const std::vector<std::string> known = known_node_datasets();
  const bool is_known = std::find(known.begin(), known.end(), dataset_name) != known.end();
  if (!is_known || data.splits.size() > 1) return "plain";
  return data.splits.size() == 1 ? "kipf" : "shchur";
}

void fill_from_recipe(NodeOptions& o, const NodeDataset& data) {
  // By the name the set has, not the one it was asked for by: "Photo", "planetoid/cora".
  if (o.recipe.empty()) o.recipe = default_recipe(o.edges.empty() ? data.name : o.edges, data);
  const Recipe& r =
      *std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](const Recipe& x) { return o.recipe == x.name; });
  check_model_options(o);
  apply_settings(o, data);
  const auto fill = [&](const char* flag, auto& option, auto value) {
    if (option < 0 && !missing_in_model(o, flag)) option = value;
  };
  const auto fill_text = [](std::string& option, const std::string& value) {
    if (option.empty()) option = value;
  };
  fill("--epochs", o.epochs, r.epochs);
  fill("--hidden", o.hidden, r.hidden);
  fill("--layers", o.layers, r.layers);
  fill("--lr", o.lr, r.lr);
  fill("--dropout", o.dropout, r.dropout);
  fill("--input-dropout", o.input_dropout, o.dropout);
  fill("--weight-decay", o.weight_decay, r.weight_decay);
  fill("--patience", o.patience, r.patience);
  fill("--stop-window", o.stop_window, r.stop_window);
  fill_text(o.decay_on, r.decay_on);
  fill_text(o.stop_on, r.stop_on);
  fill_text(o.features, r.features);
  fill_text(o.component, r.component);
  fill_text(o.split, r.split_at_random || data.splits.empty() ? "random" : "given");
  fill_text(o.metric, default_metric(data));
  fill_schedule(o);
  if (o.split == "random") o.split = std::string("random:") + r.random_split;
}

std::map<std::string, std::string> deciding_options(const NodeOptions& o) {
  std::map<std::string, std::string> out = schedule_options(o);
  out.insert({{"--dataset", o.dataset}, {"--model", o.model}, {"--seed", to_text(o.seed)}});
  for (const NodeFlag& flag : kFlags)
    if (!missing_in_model(o, flag.name)) out.emplace(flag.name, flag.text(o));
  return out;
}

NodeSplit split_of_run(const NodeOptions& o, const NodeDataset& data, int64_t run) {
  NodeSplit split;
  if (o.split.starts_with("random:")) {
    split = random_split(data, o.split.substr(7), o.seed + uint64_t(run));
  } else {
    check<UsageError>(!data.splits.empty(), "--split {}: {} comes without a split, use --split random", o.split, data.name);
    const double number = o.split == "given" ? double(run % int64_t(data.splits.size())) : parse_number(o.split, o.split);
    check<UsageError>(number < double(data.splits.size()) && number == double(size_t(number)),
                      "--split {}: {} has {} split{}, 0 is the first", o.split, data.name, data.splits.size(),
                      data.splits.size() == 1 ? "" : "s");
    split = data.splits[size_t(number)];
  }
  check<UsageError>(split.train.numel() > 0, "nothing to train on: the split has {}", counts_of(data, split));
  check<UsageError>(!keeps_best(o) || split.valid.numel() > 0,
                    "early stopping needs validation nodes but the split has {}; use --patience 0 or --split random",
                    counts_of(data, split));
  check<UsageError>(o.schedule != "plateau" || split.valid.numel() > 0,
                    "--schedule plateau needs validation nodes but the split has {}; use another schedule or --split random",
                    counts_of(data, split));
  return split;
}

}  // namespace tessera::apps
