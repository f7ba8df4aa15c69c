// tessera-train-node as its users meet it: what it prints and writes, and how it refuses.

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tessera/core/io/checkpoint.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

constexpr const char* kProgram = "tessera-train-node";

TEST(train_node, json_has_what_the_house_says) {
  const TemporaryFolder folder;
  const Ended ended = run_program({kProgram, "--runs", "3", "--seed", "5", "--json", folder / "r.json"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  const auto root = json_of(folder / "r.json");
  const auto& manifest = root["manifest"];
  EXPECT_EQ(manifest["recipe"], "kipf");
  EXPECT_EQ(manifest["seed"], 5);
  EXPECT_EQ(manifest["dataset"], "karate");
  EXPECT_EQ(manifest["device"], "cpu");
  EXPECT_EQ(manifest["options"]["--hidden"], "16");
  for (const char* name :
       {"version", "command", "threads", "isa", "data_sha256", "started", "wall_seconds", "peak_rss_bytes"})
    EXPECT_TRUE(manifest.contains(name)) << name;
  const auto& result = root["result"];
  EXPECT_EQ(result["metric"], "accuracy");
  EXPECT_EQ(result["test"]["runs"].size(), 3u);
  EXPECT_EQ(result["weights_sha256"].size(), 3u);
  EXPECT_GT(result["test"]["mean"], 0.5);
  EXPECT_FALSE(result.contains("valid")) << "karate has no validation nodes";
  EXPECT_GT(result["epoch_seconds"]["median"], 0);
}

TEST(train_node, the_default_recipe_is_by_the_set_whatever_the_spelling) {
  const TemporaryFolder folder;
  const std::string json = folder / "r.json";
  std::vector<std::pair<std::string, std::string>> cases = {{"karate", "kipf"}, {"Karate", "kipf"}, {"KarateClub", "kipf"}};
  if (have_shared_data())
    cases.insert(cases.end(), {{"cora", "kipf"},
                               {"Cora", "kipf"},
                               {"CORA", "kipf"},
                               {"planetoid/cora", "kipf"},
                               {"geom-gcn/cora", "plain"},
                               {"amazon_electronics_photo", "shchur"},
                               {"photo", "shchur"},
                               {"Photo", "shchur"},
                               {"shchur/amazon_electronics_photo", "shchur"}});
  for (const auto& [asked, recipe] : cases) {
    const Ended ended = run_program(
        {kProgram, "--dataset", asked, "--data", shared_data().string(), "--offline", "--epochs", "1", "--json", json});
    ASSERT_EQ(ended.code, 0) << asked << ": " << ended.errors;
    EXPECT_EQ(json_of(json)["manifest"]["recipe"], recipe) << asked;
  }
}

TEST(train_node, a_misspelt_set_does_not_train_on_what_lies_there) {
  const TemporaryFolder folder;
  put(folder / "edges.csv", "a,b\nb,c\nc,a\n");
  put(folder / "nodes.csv", "id,x,label\na,1,0\nb,2,1\nc,3,0\n");
  const Ended ended = run_program({kProgram, "--dataset", "coar", "--data", folder.path(), "--offline"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.errors.starts_with(std::string(kProgram) +
                                       ": --dataset: the data set 'coar' is not known, did you mean 'cora'?"))
      << ended.errors;
  EXPECT_EQ(
      run_program({kProgram, "--dataset", folder.path(), "--split", "random:1/0", "--patience", "0", "--epochs", "1"}).code,
      0);
}

TEST(train_node, outputs_overwrite_neither_inputs_nor_each_other) {
  const TemporaryFolder folder;
  const std::string edges = folder / "edges.csv", nodes = folder / "nodes.csv", dir = folder.path();
  put(edges, "a,b\nb,c\nc,a\n");
  put(nodes, "id,x,label\na,1,0\nb,2,1\nc,3,0\n");
  std::filesystem::create_directory(folder / "in");
  std::filesystem::create_symlink(nodes, folder / "link");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--json", edges}, "--json " + edges + ": would overwrite what --edges reads"},
      {{"--save", folder / "in/../nodes.csv"},
       "--save " + folder / "in/../nodes.csv" + ": would overwrite what --nodes reads"},
      {{"--report", folder / "link"}, "--report " + folder / "link" + ": would overwrite what --nodes reads"},
      {{"--json", folder / "r", "--report", folder / "./r"}, "--report " + folder / "./r" + ": is where --json writes too"},
      {{"--json", folder / "r", "--save", folder / "in/../r"},
       "--save " + folder / "in/../r" + ": is where --json writes too"},
      {{"--checkpoint", folder / "in", "--save", folder / "in/model.safetensors"},
       "--checkpoint " + folder / "in/model.safetensors" + ": is where --save writes too"},
  };
  const std::string before = read_file(edges) + read_file(nodes);
  for (const auto& [arguments, line] : cases) {
    std::vector<std::string> all = {kProgram, "--edges", edges, "--nodes", nodes};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ended ended = run_program(all);
    EXPECT_EQ(ended.code, 2) << line;
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + line + " (see --help)\n");
    EXPECT_EQ(read_file(edges) + read_file(nodes), before);
  }
  EXPECT_EQ(run_program({kProgram, "--epochs", "1", "--json", "/dev/null", "--report", "/dev/null"}).code, 0);
}

TEST(train_node, a_diverged_run_ends_in_one_line_and_saves_nothing) {
  const TemporaryFolder folder;
  const std::string state = folder / "c/checkpoint.safetensors";
  const auto diverges = [&](const std::string& lr, const std::string& epochs, const std::string& what) {
    const Ended ended = run_program({kProgram, "--lr", lr, "--epochs", epochs, "--json", folder / "r", "--save",
                                     folder / "w", "--checkpoint", folder / "c", "--checkpoint-every", "1"});
    EXPECT_EQ(ended.code, 1);
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": run 0 diverged: " + what + "; nothing more is saved, try a smaller " +
                                "--lr than " + lr + "\n");
    for (const char* file : {"r", "w", "c/model.safetensors"}) EXPECT_FALSE(file_exists(folder / file)) << file;
  };
  diverges("1e+38", "1", "convs.0.bias is not finite after epoch 1");
  EXPECT_FALSE(file_exists(state));
  diverges("1e+30", "50", "the training loss is nan in epoch 2");
  EXPECT_EQ(load_checkpoint(state).integer("epoch"), 1) << "the last state that was finite";
}

TEST(train_node, hidden_labels_are_left_out_of_an_own_split) {
  const TemporaryFolder folder;
  put(folder / "e.csv", "a,b\nb,c\nc,d\nd,e\ne,f\n");
  put(folder / "n.csv", "id,x,label,split\na,1,0,train\nb,2,,train\nc,3,1,train\nd,1,0,valid\ne,2,,test\nf,3,1,test\n");
  const Ended ended = run_program({kProgram, "--edges", folder / "e.csv", "--nodes", folder / "n.csv", "--epochs", "2"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.errors, "2 nodes of the split without a label, left out of it\n");
  EXPECT_NE(ended.output.find("; 2/1/1 train/valid/test\n"), std::string::npos) << ended.output;
}

TEST(train_node, the_same_bits_for_every_number_of_threads) {
  const TemporaryFolder folder;
  std::string first;
  for (const char* threads : {"1", "2", "3"}) {
    ASSERT_EQ(
        run_program({kProgram, "--threads", threads, "--epochs", "50", "--hidden", "256", "--json", folder / "r.json"}).code,
        0);
    const std::string digest = json_of(folder / "r.json")["result"]["weights_sha256"][0];
    if (first.empty()) first = digest;
    EXPECT_EQ(digest, first) << threads;
  }
}

struct Refused {
  std::vector<std::string> arguments;
  int code;
  std::string line;
};

TEST(train_node, refuses_with_one_line) {
  const TemporaryFolder folder;
  put(folder / "file", "x");
  const std::string counts =
      "4/0/30 train/valid/test nodes (class 0: 1/0/12, class 1: 1/0/11, class 2: 1/0/3, class 3: 1/0/4)";
  const std::vector<Refused> cases = {
      {{"--epocs", "3"}, 2, "unknown option --epocs, did you mean --epochs? (see --help)"},
      {{"--epochs", "0"}, 2, "--epochs: '0' needs to be a number from 1 to 100000000 (see --help)"},
      {{"--epochs", "many"}, 2, "--epochs: 'many' needs to be a number from 1 to 100000000 (see --help)"},
      {{"--dropout", "1.5"}, 2, "--dropout: '1.5' needs to be a number from 0 to 1 (see --help)"},
      {{"--lr", "-1"}, 2, "--lr: '-1' needs to be a number of 0 or more (see --help)"},
      {{"--model", "gnc"},
       2,
       "--model: 'gnc' is not known, did you mean 'gcn'? (gcn, gat, sage, gin, sgc, appnp, gcn2, deeper-gcn, residual-gcn, "
       "residual-sage) (see --help)"},
      {{"--recipe", "kpif"},
       2,
       "--recipe: 'kpif' is not known, did you mean 'kipf'? (kipf, shchur, pyg-citation, platonov, plain) (see --help)"},
      {{"--device", "cuda"}, 2, "--device: 'cuda' is not known (cpu) (see --help)"},
      {{"--patience", "5"},
       2,
       "early stopping needs validation nodes but the split has " + counts +
           "; use --patience 0 or --split random (see --help)"},
      {{"--split", "1"}, 2, "--split 1: karate has 1 split, 0 is the first (see --help)"},
      {{"--split", "random:60%/50%"}, 2, "--split random:60%/50%: the shares are more than 100 % together (see --help)"},
      {{"--split", "random:0/5"}, 2, ""},
      {{"--split", "often"},
       2,
       "--split often: needs to be given, random, random:20/30 (nodes of each class), random:20/500/1000, random:60%/20% "
       "(shares) or a number "
       "(see "
       "--help)"},
      {{"--lr-every", "5"}, 2, "--lr-every goes with --schedule step (see --help)"},
      {{"--schedule", "cosine", "--lr-factor", "0.5"}, 2, "--lr-factor goes with --schedule step or plateau (see --help)"},
      {{"--schedule", "cosin"},
       2,
       "--schedule: 'cosin' is not known, did you mean 'cosine'? (none, step, cosine, plateau, warmup) (see --help)"},
      {{"--schedule", "cosine", "--lr", "0.01", "--lr-least", "0.1"}, 2, "--lr-least 0.1 is above --lr 0.01 (see --help)"},
      {{"--schedule", "plateau", "--lr-least", "1"}, 2, "--lr-least 1 is above --lr 0.01 (see --help)"},
      {{"--dataset", "karate", "--edges", "e.csv"},
       2,
       "--dataset karate and --edges e.csv are two graphs: drop --dataset for your own files, else --edges (see --help)"},
      {{"--data", "here", "--edges", "e.csv"},
       2,
       "--data here is where --dataset is looked for: drop it, --edges e.csv is read as it stands (see --help)"},
      {{"--warmup", "200"}, 2, "--warmup 200 leaves nothing of --epochs 200 (see --help)"},
      {{"--schedule", "plateau"},
       2,
       "--schedule plateau needs validation nodes but the split has " + counts +
           "; use another schedule or --split random (see --help)"},
      {{"--metric", "roc-auc"}, 2, "--metric roc-auc needs 2 classes but karate has 4 (see --help)"},
      {{"--resume"}, 2, "--resume and --checkpoint-every need --checkpoint DIR (see --help)"},
      {{"--json", folder / "no/r.json"},
       2,
       "--json " + folder / "no/r.json" + ": there is no folder " + folder / "no" + " (see --help)"},
      {{"--report", folder.path()}, 2, "--report " + folder.path() + ": is a folder but needs to be a file (see --help)"},
      {{"--checkpoint", folder / "file"},
       2,
       "--checkpoint " + folder / "file" + ": is a file but needs to be a folder (see --help)"},
      {{"--log-dir", folder / "file/x"}, 2, ""},
      {{"--save", "/proc/w.safetensors"},
       2,
       "--save /proc/w.safetensors: cannot write in /proc: No such file or directory (see --help)"},
      {{"--nodes", folder / "file"},
       2,
       "--nodes, --id-column, --label-column and --split-column go with --edges FILE (see --help)"},
      {{"--edges", folder / "none.csv"}, 1, folder / "none.csv" + ": cannot be opened: No such file or directory"},
      {{"--dataset", "cora", "--data", folder.path(), "--offline"}, 1, ""},
  };
  for (const Refused& c : cases) {
    std::vector<std::string> arguments = {kProgram};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.code, c.code) << c.arguments[0];
    EXPECT_EQ(ended.output, "") << "nothing was started";
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
    if (c.line.empty()) continue;
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + c.line + "\n");
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"file"}) << "nothing was left behind";
}

TEST(train_node, an_unknown_data_set_names_the_nearest) {
  const Ended ended = run_program({kProgram, "--dataset", "coraa", "--offline"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.errors.find("the data set 'coraa' is not known, did you mean 'cora'?"), std::string::npos) << ended.errors;
}

TEST(train_node, help_teaches) {
  const Ended ended = run_program({kProgram, "--help"});
  EXPECT_EQ(ended.code, 0);
  for (const char* text : {"Usage: tessera-train-node [options]", "Examples:", "--resume", "Exit codes:", "[karate]"})
    EXPECT_NE(ended.output.find(text), std::string::npos) << text;
  size_t begin = 0;
  for (size_t end; (end = ended.output.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 110u) << ended.output.substr(begin, end - begin);
}

// H64
TEST(train_node, says_when_there_is_no_validation) {
  const Ended ended = run_program({kProgram, "--epochs", "5"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.output.find("valid no such nodes"), std::string::npos) << ended.output;
}

// H64: one validation node is enough.
TEST(train_node, early_stopping_returns_to_the_best_weights) {
  const TemporaryFolder folder;
  const std::vector<std::string> base = {kProgram, "--split", "random:50%/20%", "--json", folder / "r.json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    const Ended ended = run_program(more);
    EXPECT_EQ(ended.code, 0) << ended.errors;
    return json_of(folder / "r.json")["result"];
  };
  const auto stopped = with({"--patience", "5", "--epochs", "3000", "--lr", "0.1"});
  const int epochs = stopped["epochs"][0];
  EXPECT_LT(epochs, 3000);
  // The weights are those of the best epoch: of a run that ends there.
  const auto until_best = with({"--epochs", std::to_string(epochs - 5), "--lr", "0.1"});
  EXPECT_EQ(stopped["weights_sha256"], until_best["weights_sha256"]);
  for (const char* what : {"metric", "objective"})
    EXPECT_LT(with({"--patience", "3", "--epochs", "3000", "--stop-on", what, "--lr", "0.1"})["epochs"][0], 3000) << what;
}

TEST(train_node, schedules_change_the_rate) {
  const TemporaryFolder folder;
  std::set<std::string> weights;
  const std::vector<std::vector<std::string>> schedules = {
      {},
      {"--schedule", "none"},
      {"--schedule", "step", "--lr-every", "10", "--lr-factor", "0.5"},
      {"--schedule", "cosine"},
      {"--schedule", "cosine", "--warmup", "5"},
      {"--schedule", "plateau", "--lr-patience", "0", "--lr-factor", "0.5"},
      {"--schedule", "warmup"},
  };
  for (const auto& schedule : schedules) {
    std::vector<std::string> arguments = {kProgram, "--epochs",  "60", "--split", "random:50%/20%", "--lr",
                                          "0.2",    "--dropout", "0",  "--json",  folder / "r.json"};
    arguments.insert(arguments.end(), schedule.begin(), schedule.end());
    const Ended ended = run_program(arguments);
    ASSERT_EQ(ended.code, 0) << ended.errors;
    const auto root = json_of(folder / "r.json");
    weights.insert(std::string(root["result"]["weights_sha256"][0]));
    EXPECT_EQ(root["manifest"]["options"]["--schedule"], schedule.empty() ? "none" : schedule[1]);
    EXPECT_EQ(root["manifest"]["options"].contains("--lr-every"), !schedule.empty() && schedule[1] == "step");
  }
  EXPECT_EQ(weights.size(), schedules.size() - 1) << "none is the default, all others differ";
}

/// Twelve people in two clubs; the label says which, of `validation` the validation ones.
void write_two_clubs(const TemporaryFolder& folder, const std::string& validation) {
  std::string edges, nodes = "id,x,label,split\n";
  for (int i = 0; i < 12; ++i) {
    edges += std::to_string(i) + "," + std::to_string((i + 2) % 12) + "\n";
    const std::string label = std::to_string(i % 2);
    const std::string split = i < 4 ? "train" : i < 8 ? "test" : label == validation || validation.empty() ? "valid" : "";
    nodes += std::to_string(i) + "," + std::to_string(i % 2 == 0 ? 1 : -1) + "," + label + "," + split + "\n";
  }
  put(folder / "edges.csv", edges);
  put(folder / "nodes.csv", nodes);
}

TEST(train_node, roc_auc_everywhere) {
  const TemporaryFolder folder;
  write_two_clubs(folder, "");
  const std::vector<std::string> base = {kProgram,
                                         "--edges",
                                         folder / "edges.csv",
                                         "--nodes",
                                         folder / "nodes.csv",
                                         "--metric",
                                         "roc-auc",
                                         "--epochs",
                                         "100",
                                         "--stop-on",
                                         "metric",
                                         "--json",
                                         folder / "r.json",
                                         "--report",
                                         folder / "r.html",
                                         "--save",
                                         folder / "w.safetensors",
                                         "--dropout",
                                         "0"};
  const Ended ended = run_program(base);
  ASSERT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("test  ROC-AUC 100.00 %"), std::string::npos) << ended.output;
  const auto root = json_of(folder / "r.json");
  EXPECT_EQ(root["result"]["metric"], "roc-auc");
  EXPECT_EQ(root["result"]["test"]["mean"], 1.0);
  EXPECT_EQ(root["manifest"]["options"]["--metric"], "roc-auc");
  const std::string page = read_file(folder / "r.html");
  EXPECT_NE(page.find("test ROC-AUC"), std::string::npos);
  const Ended predicted = run_program({"tessera-predict", "--weights", folder / "w.safetensors", "--edges",
                                       folder / "edges.csv", "--nodes", folder / "nodes.csv", "--out", folder / "p.csv"});
  EXPECT_EQ(predicted.code, 0);
  EXPECT_NE(predicted.errors.find("ROC-AUC 100.00 %"), std::string::npos) << predicted.errors;
}

// H40, H64: one class alone among the validation nodes.
TEST(train_node, roc_auc_of_one_class_is_not_defined) {
  const TemporaryFolder folder;
  write_two_clubs(folder, "1");
  std::vector<std::string> arguments = {kProgram,          "--edges",  folder / "edges.csv", "--nodes", folder / "nodes.csv",
                                        "--metric",        "roc-auc",  "--epochs",           "100",     "--json",
                                        folder / "r.json", "--report", folder / "r.html"};
  const Ended ended = run_program(arguments);
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const std::string line = "run 0: all 2 validation nodes are of class 1, so their ROC-AUC is not defined";
  EXPECT_EQ(ended.errors, line + "\n");
  EXPECT_NE(ended.output.find("valid ROC-AUC not defined"), std::string::npos) << ended.output;
  const auto result = json_of(folder / "r.json")["result"];
  EXPECT_TRUE(result["valid"]["mean"].is_null());
  EXPECT_EQ(result["valid"]["undefined"], 1);
  EXPECT_NE(read_file(folder / "r.html").find("not defined"), std::string::npos);
  EXPECT_EQ(read_file(folder / "r.html").find("nan"), std::string::npos);
  arguments.insert(arguments.end(), {"--stop-on", "metric"});
  const Ended refused = run_program(arguments);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.errors, std::string(kProgram) + ": " + line + "; --stop-on loss would do (see --help)\n");
}

TEST(train_node, the_metric_of_the_authors) {
  if (!have_shared_data("heterophilous/minesweeper.npz")) return;
  const TemporaryFolder folder;
  const Ended ended = run_program({kProgram, "--dataset", "minesweeper", "--data", shared_data().string(), "--epochs", "5",
                                   "--json", folder / "r.json", "--log-dir", folder / "log"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const auto result = json_of(folder / "r.json")["result"];
  EXPECT_EQ(result["metric"], "roc-auc");
  EXPECT_GT(result["test"]["mean"], 0.3);
  EXPECT_LT(result["test"]["mean"], 0.95);
}

TEST(train_node, report_needs_nothing_beside_itself) {
  const TemporaryFolder folder;
  const Ended ended = run_program({kProgram, "--split", "random:50%/20%", "--runs", "2", "--report", folder / "r.html"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const std::string page = read_file(folder / "r.html");
  for (const char* text :
       {"<!doctype html>", "<svg", "Per class", "predicted", "Runs", "How this was made", "weights sha256", "</html>"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  for (const char* text : {"http:", "https:", "src=", "href=", "url(", "@import", "<script", "nan", "inf"})
    EXPECT_EQ(page.find(text), std::string::npos) << text;
}

// H56
TEST(train_node, paths_are_bytes) {
  const TemporaryFolder folder;
  const std::string odd = folder / "Präparat 切片 #1";
  std::filesystem::create_directory(odd);
  put(odd + "/edges.csv", "a,b\nb,c\nc,d\nd,a\n");
  put(odd + "/nodes.csv", "id,x,label\na,1,rot\nb,2,blau\nc,3,rot\nd,4,grün <&>\n");
  for (const char* locale : {"LC_ALL=C", "LC_ALL=C.UTF-8"}) {
    const Ended ended = run_program(
        {kProgram, "--edges", odd + "/edges.csv", "--nodes", odd + "/nodes.csv", "--split", "random:1/0", "--patience", "0",
         "--epochs", "5", "--json", odd + "/r.json", "--report", odd + "/r.html", "--checkpoint", odd + "/ü", "--resume"},
        {locale});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_NE(read_file(odd + "/r.html").find("grün &lt;&amp;&gt;"), std::string::npos);
    EXPECT_NO_THROW((void)load_checkpoint(odd + "/ü/model.safetensors"));
    EXPECT_EQ(json_of(odd + "/r.json")["manifest"]["dataset"], odd + "/edges.csv");
  }
  const Ended missing = run_program({kProgram, "--edges", odd + "/nö.csv"}, {"LC_ALL=C"});
  EXPECT_EQ(missing.errors, std::string(kProgram) + ": " + odd + "/nö.csv: cannot be opened: No such file or directory\n");
}

// No loop of the karate club is worth a second thread: oneTBB makes its workers at the first parallel loop, so there are
// none.
TEST(train_node, a_small_graph_starts_no_thread) {
  Process process({kProgram, "--threads", "4", "--epochs", "100000000"});
  process.wait_for_output();
  ::usleep(300000);
  int tasks = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process.pid()) + "/task")) {
    (void)task;
    ++tasks;
  }
  EXPECT_EQ(tasks, 1);
  process.kill(SIGINT);
  EXPECT_EQ(process.wait(), 130);
}

TEST(train_node, given_splits_one_a_run) {
  if (!have_shared_data("heterophilous/cornell.npz")) return;
  const TemporaryFolder folder;
  const Ended ended = run_program({kProgram, "--dataset", "heterophilous/cornell", "--data", shared_data().string(),
                                   "--runs", "10", "--epochs", "30", "--json", folder / "r.json"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const auto root = json_of(folder / "r.json");
  EXPECT_EQ(root["manifest"]["recipe"], "plain");
  EXPECT_EQ(root["manifest"]["options"]["--split"], "given");
  EXPECT_EQ(root["result"]["test"]["runs"].size(), 10u);
}

}  // namespace
}  // namespace tessera::test
