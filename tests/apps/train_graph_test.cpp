// tessera-train-graph as its users meet it: what it prints and writes, how it refuses, how it continues.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tessera/apps/support/graph_run.h"
#include "tessera/core/autograd.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

using namespace apps;

constexpr const char* kProgram = "tessera-train-graph";
using Arguments = std::vector<std::string>;

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Rings of 3 to 8 nodes against stars of the same size, in GIN's text form.
void put_rings_and_stars(const std::string& path, int graphs) {
  std::filesystem::create_directories(path + "/10fold_idx");
  std::string text = to_text(graphs) + "\n";
  for (int g = 0; g < graphs; ++g) {
    const int n = 3 + g / 2 % 6;
    text += to_text(n) + " " + to_text(g % 2) + "\n";
    for (int i = 0; i < n; ++i) {
      if (g % 2 == 0) {
        text += "0 2 " + to_text((i + 1) % n) + " " + to_text((i + n - 1) % n) + "\n";
      } else if (i > 0) {
        text += "0 1 0\n";
      } else {
        text += "0 " + to_text(n - 1);
        for (int k = 1; k < n; ++k) text += " " + to_text(k);
        text += "\n";
      }
    }
  }
  put(path + "/shapes.txt", text);
}

class TrainGraph : public testing::Test {
 protected:
  void SetUp() override { put_rings_and_stars(folder_ / "shapes", 40); }
  Ended train(const Arguments& more) { return run_program(base() + more); }
  Arguments base() const { return {kProgram, "--dataset", "shapes", "--data", folder_.path()}; }
  TemporaryFolder folder_;
};

TEST_F(TrainGraph, JsonHasWhatTheHouseSays) {
  const Ended ended =
      train({"--model", "gin", "--folds", "4", "--runs", "2", "--epochs", "30", "--seed", "5", "--json", folder_ / "r.json",
             "--report", folder_ / "r.html", "--log-dir", folder_ / "log", "--save", folder_ / "w"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  const auto root = json_of(folder_ / "r.json");
  const auto& manifest = root["manifest"];
  EXPECT_EQ(manifest["recipe"], "pyg-kernel");
  EXPECT_EQ(manifest["dataset"], "shapes");
  EXPECT_EQ(manifest["options"]["--hidden"], "32");
  EXPECT_EQ(manifest["options"]["--lr-every"], "50");
  for (const char* name :
       {"version", "command", "threads", "isa", "data_sha256", "started", "wall_seconds", "peak_rss_bytes"})
    EXPECT_TRUE(manifest.contains(name)) << name;
  const auto& result = root["result"];
  EXPECT_EQ(result["folds"], 4);
  EXPECT_EQ(result["test"]["runs"].size(), 8u);
  EXPECT_EQ(result["test"]["repetitions"].size(), 2u);
  EXPECT_EQ(result["valid_loss"]["runs"].size(), 8u);
  EXPECT_GT(result["test"]["mean"], 0.9) << "degrees tell rings from stars";
  const std::string report = read_file(folder_ / "r.html");
  for (const char* text : {"shapes: 40 graphs", "Accuracy (run ", "Test graphs: label and prediction", "run 1, fold 3"})
    EXPECT_NE(report.find(text), std::string::npos) << text;
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "log/run-1-fold-3"));
  const Checkpoint weights = load_checkpoint(folder_ / "w");
  EXPECT_EQ(weights.text("outputs"), "2");
  EXPECT_EQ(weights.text("option.--model"), "gin");
  EXPECT_TRUE(weights.tensors.contains("conv1.nn.0.weight"));
}

TEST_F(TrainGraph, EveryModelAndTheSameBitsForEveryNumberOfThreads) {
  for (const std::string& model : graph_model_names()) {
    if (model.ends_with("-virtual")) continue;
    std::string first;
    for (const char* threads : {"1", "3"}) {
      const Ended ended = train({"--model", model, "--split", "random:50%/25%", "--epochs", "3", "--threads", threads,
                                 "--batch", "7", "--json", folder_ / "r.json"});
      ASSERT_EQ(ended.code, 0) << model << ended.errors;
      const std::string digest = json_of(folder_ / "r.json")["result"]["weights_sha256"][0];
      if (first.empty()) first = digest;
      EXPECT_EQ(digest, first) << model;
    }
  }
}

TEST_F(TrainGraph, AGridReportsTheCellOfTheLeastValidationLoss) {
  for (const char* choice : {"set", "fold"}) {
    const Ended ended = train({"--grid", "--grid-choice", choice, "--folds", "2", "--split", "folds:20%", "--epochs", "2",
                               "--json", folder_ / "r.json", "--save", folder_ / "w"});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    const auto result = json_of(folder_ / "r.json")["result"];
    ASSERT_EQ(result["grid"].size(), 20u);
    EXPECT_EQ(result["grid"][19]["options"]["--layers"], "5");
    EXPECT_EQ(result["test"]["runs"].size(), 2u);
    double least = INFINITY;
    for (const auto& cell : result["grid"]) least = std::min<double>(least, cell["valid_loss"]);
    if (choice == std::string("set")) {
      EXPECT_DOUBLE_EQ(result["valid_loss"]["mean"], least);
    } else {
      EXPECT_LE(double(result["valid_loss"]["mean"]), least);
    }
    EXPECT_NE(load_checkpoint(folder_ / "w").text("option.--layers"), "grid");
  }
}

// H53, H54: what was interrupted or killed and goes on ends with the same bits.
TEST_F(TrainGraph, ResumedTrainingIsTheSame) {
  const Arguments options = {"--model",  "gin", "--folds", "5", "--runs",     "2",
                             "--epochs", "12",  "--batch", "8", "--patience", "6"};
  const auto outcome = [&](const std::string& json, const std::string& weights) {
    nlohmann::json result = json_of(json)["result"];
    result.erase("epoch_seconds");
    result["file"] = std::hash<std::string>{}(read_file(weights));
    return result;
  };
  ASSERT_EQ(train(options + Arguments{"--json", folder_ / "a.json", "--save", folder_ / "a"}).code, 0);
  const Arguments resumed =
      base() + options +
      Arguments{"--json", folder_ / "b.json", "--checkpoint", folder_ / "c", "--resume", "--checkpoint-every", "1"};
  int stopped = 0;
  for (const int signal : {SIGINT, SIGKILL, SIGKILL, SIGINT}) {
    Process process(resumed);
    process.wait_for_output();
    ::usleep(20000);
    process.kill(signal);
    const int code = process.wait();
    if (code == 0) break;
    ++stopped;
    EXPECT_EQ(code, signal == SIGINT ? 130 : 128 + SIGKILL) << process.errors;
    if (signal == SIGINT) {
      EXPECT_NE(process.errors.find("--resume continues from there"), std::string::npos) << process.errors;
    }
  }
  EXPECT_GE(stopped, 1);
  const Ended last = run_program(resumed);
  ASSERT_EQ(last.code, 0) << last.errors;
  EXPECT_EQ(outcome(folder_ / "b.json", folder_ / "c/model.safetensors"), outcome(folder_ / "a.json", folder_ / "a"));

  const Ended again = run_program(resumed);
  EXPECT_EQ(again.code, 0) << "what is finished is told again: " << again.errors;
  EXPECT_EQ(outcome(folder_ / "b.json", folder_ / "c/model.safetensors"), outcome(folder_ / "a.json", folder_ / "a"));
  EXPECT_EQ(run_program(base() + options + Arguments{"--checkpoint", folder_ / "c", "--resume", "--lr", "0.5"}).errors,
            std::string(kProgram) + ": " + folder_ / "c/checkpoint.safetensors" +
                ": was made with other options: --lr 0.5 (was 0.01); give the same, or another --checkpoint folder (see "
                "--help)\n");
}

TEST_F(TrainGraph, RefusesWithOneLine) {
  struct Refused {
    Arguments arguments;
    int code;
    std::string line;
  };
  const std::string counts = "36/0/4 train/valid/test graphs (class 0: 18/0/2, class 1: 18/0/2)";
  const std::vector<Refused> cases = {
      {{"--modle", "gin"}, 2, "unknown option --modle, did you mean --model? (see --help)"},
      {{"--model", "gim"},
       2,
       "--model: 'gim' is not known, did you mean 'gin'? (gcn, gin, sage, sagpool, topk, sagpool-hierarchical, "
       "sagpool-global, "
       "gcn-virtual, gin-virtual) (see --help)"},
      {{"--model", "gin-virtual"},
       2,
       "--model gin-virtual takes atoms and bonds as categories but the set has numbers: gcn, gin, sage, sagpool, topk, "
       "sagpool-hierarchical, sagpool-global would do (see --help)"},
      {{"--model", "sagpool-global", "--layers", "2"}, 2, "--layers 2: --model sagpool-global has three (see --help)"},
      {{"--model", "sagpool-global", "--grid"},
       2,
       "--grid tries layers, of which --model sagpool-global always has three (see --help)"},
      {{"--grid", "--hidden", "8"}, 2, "--grid tries layers and widths: drop --layers and --hidden (see --help)"},
      {{"--ratio", "0.5"}, 2, "--ratio 0.5: --model gcn has no pooling (see --help)"},
      {{"--grid-choice", "fold"}, 2, "--grid-choice goes with --grid (see --help)"},
      {{"--features", "labels"}, 2, "--features labels: choose_features: shapes has no node labels (see --help)"},
      {{"--split", "given"},
       2,
       "--split given: shapes comes without a split, use --split folds or random:80%/10% (see --help)"},
      {{"--split", "often"},
       2,
       "--split often: needs to be folds, given, a number, each with :10% to hold out validation graphs, or random:80%/10% "
       "(see --help)"},
      {{"--split", "random:80%/30%"}, 2, "--split random:80%/30%: the shares are more than 100 % together (see --help)"},
      {{"--folds", "50"}, 2, ""},
      {{"--folds", "5", "--split", "random:80%/10%"},
       2,
       "--folds 5 goes with --split folds, not random:80%/10% (see --help)"},
      {{"--split", "random:90%/0%", "--patience", "5"}, 2, ""},
      {{"--metric", "rmse"}, 2, "--metric rmse is of numbers but shapes has classes (see --help)"},
      {{"--class-weights", "1,2,3"}, 2, "--class-weights 1,2,3: has 3 numbers but shapes has 2 classes (see --help)"},
      {{"--class-weights", "much"},
       2,
       "--class-weights much: needs to be none, balanced, or numbers with commas (see --help)"},
      {{"--resume"}, 2, "--resume and --checkpoint-every need --checkpoint DIR (see --help)"},
      {{"--json", folder_ / "no/r.json"},
       2,
       "--json " + folder_ / "no/r.json" + ": there is no folder " + folder_ / "no" + " (see --help)"},
      {{"--lr", "1e30", "--epochs", "20"}, 1, ""},
  };
  for (const Refused& c : cases) {
    const Ended ended = train(c.arguments);
    EXPECT_EQ(ended.code, c.code) << c.arguments[1 % c.arguments.size()] << ended.errors;
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
    if (!c.line.empty()) {
      EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + c.line + "\n");
    }
  }
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"shapes"}) << "nothing was left behind";
  const Ended unknown = run_program({kProgram, "--dataset", "PROTIENS", "--data", folder_.path()});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.errors.find("'PROTIENS' is not known, did you mean 'PROTEINS'?"), std::string::npos) << unknown.errors;
  const Ended help = run_program({kProgram, "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* text : {"Examples:", "--grid", "Exit codes:", "pyg-kernel"})
    EXPECT_NE(help.output.find(text), std::string::npos) << text;
}

// H64, H40
TEST_F(TrainGraph, NothingToValidateOn) {
  Ended ended = train({"--split", "random:90%/0%"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(
      ended.errors.find("--take best needs validation graphs but the split has 36/0/4 train/valid/test graphs (class 0: "),
      std::string::npos)
      << ended.errors;
  ended = train({"--split", "random:90%/0%", "--take", "last", "--epochs", "2"});
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("valid no such graphs"), std::string::npos) << ended.output;
  ended = train({"--split", "random:90%/5%", "--metric", "roc-auc", "--epochs", "2", "--seed", "3"});
  EXPECT_EQ(ended.code, 0) << ended.errors;
  ended = train({"--split", "random:97%/2.5%", "--metric", "roc-auc", "--epochs", "2"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.errors,
            "the 1 validation graphs are all of one class, so their ROC-AUC is not defined\n"
            "the 1 test graphs are all of one class, so their ROC-AUC is not defined\n");
  EXPECT_NE(ended.output.find("test  ROC-AUC not defined"), std::string::npos) << ended.output;
  ended = train({"--split", "random:97%/2.5%", "--metric", "roc-auc", "--stop-on", "metric"});
  EXPECT_EQ(ended.errors,
            std::string(kProgram) +
                ": the 1 validation graphs are all of one class, so their ROC-AUC is not defined; --stop-on loss "
                "would do (see --help)\n");
}

TEST(train_graph, recipes_on_real_sets) {
  if (!have_shared_data()) return;
  const TemporaryFolder folder;
  struct Row {
    const char *set, *recipe, *model, *metric;
    Arguments more;
    size_t values;
  };
  const std::vector<Row> rows = {
      {"MUTAG", "pyg-kernel", "gcn", "accuracy", {"--epochs", "2"}, 10},
      {"tu-gin/MUTAG", "errica", "gin", "accuracy", {"--epochs", "2", "--patience", "1", "--class-weights", "balanced"}, 10},
      {"MUTAG", "sagpool", "sagpool-hierarchical", "accuracy", {"--epochs", "2"}, 1},
      {"ogbg-molesol", "ogb", "gin-virtual", "rmse", {"--epochs", "1", "--hidden", "16", "--layers", "2"}, 1},
      {"ogbg-molbace", "ogb", "gcn", "roc-auc", {"--epochs", "1", "--hidden", "16", "--layers", "2"}, 1},
  };
  for (const Row& row : rows) {
    const Ended ended = run_program(Arguments{kProgram, "--dataset", row.set, "--data", shared_data().string(), "--recipe",
                                              row.recipe, "--model", row.model, "--json", folder / "r.json"} +
                                    row.more);
    ASSERT_EQ(ended.code, 0) << row.set << ended.errors;
    const auto root = json_of(folder / "r.json");
    EXPECT_EQ(root["result"]["metric"], row.metric);
    EXPECT_EQ(root["result"]["test"]["runs"].size(), row.values) << row.recipe;
    EXPECT_TRUE(root["result"]["test"]["mean"].is_number());
  }
}

// H36: what nobody knows has no part in a loss.
TEST(graph_losses, unknown_targets_have_no_influence) {
  const auto tasks = [](std::initializer_list<float> values) { return Tensor::from(values, {3, 1}); };
  Tensor logits = tasks({0, 0, 2});
  logits.set_requires_grad();
  const Tensor y = tasks({1, NAN, 0});
  Tensor loss = loss_of(GraphTask::binary, logits, y, {});
  EXPECT_NEAR(loss.item(), 1.4100376, 1e-6);
  backward(loss);
  EXPECT_EQ(logits.grad().data<float>()[1], 0);
  logits.clear_grad();
  loss = loss_of(GraphTask::regression, logits, y, {});
  EXPECT_NEAR(loss.item(), 2.5, 1e-6);
  backward(loss);
  EXPECT_EQ(logits.grad().to_vector<float>(), (std::vector<float>{-1, 0, 2}));
  EXPECT_FALSE(loss_of(GraphTask::regression, logits, tasks({NAN, NAN, NAN}), {}).defined());
  EXPECT_EQ(score_of("accuracy", GraphTask::binary, logits, y), 0);
  EXPECT_DOUBLE_EQ(score_of("mae", GraphTask::regression, logits, y), 1.5);
}

}  // namespace
}  // namespace tessera::test
