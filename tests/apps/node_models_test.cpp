// tessera-train-node with other models than gcn, and the protocols that are theirs.

#include <gtest/gtest.h>

#include "tessera/apps/support/node_run.h"
#include "tessera/datasets/graph/karate.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"
#include "tessera/tests/support/data.h"

namespace tessera::test {
namespace {

using apps::NodeOptions;

constexpr const char* kProgram = "tessera-train-node";

TEST(node_models, options_of_other_models_are_refused) {
  for (const auto& [arguments, line] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--heads", "4"}, "--heads 4: the model gcn has no such option"},
           {{"--model", "sgc", "--dropout", "0.5"}, "--dropout 0.5: the model sgc has no such option"},
           {{"--model", "gat", "--norm", "batch"}, "--norm batch: the model gat has no such option"}}) {
    std::vector<std::string> all = {kProgram};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ended ended = run_program(all);
    EXPECT_EQ(ended.code, 2);
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + line + " (see --help)\n");
  }
}

NodeOptions filled(const std::string& recipe, const std::string& model, const std::string& dataset) {
  NodeDataset data = karate_club();
  data.name = dataset;
  NodeOptions o;
  o.recipe = recipe;
  o.model = model;
  apps::fill_from_recipe(o, data);
  return o;
}

/// The table of benchmark/citation/run.sh.
TEST(node_models, pyg_citation_sets_what_its_scripts_set) {
  const NodeOptions gcn = filled("pyg-citation", "gcn", "cora");
  EXPECT_EQ(apps::deciding_options(gcn),
            (std::map<std::string, std::string>{
                {"--dataset", "karate"}, {"--model", "gcn"},           {"--seed", "0"},          {"--schedule", "none"},
                {"--features", "rows"},  {"--component", "all"},       {"--split", "given"},     {"--hidden", "16"},
                {"--layers", "2"},       {"--dropout", "0.5"},         {"--input-dropout", "0"}, {"--norm", "none"},
                {"--lr", "0.01"},        {"--weight-decay", "0.0005"}, {"--decay-on", "all"},    {"--epochs", "200"},
                {"--patience", "0"},     {"--stop-window", "10"},      {"--metric", "accuracy"}, {"--stop-on", "loss"}}));
  const NodeOptions gat = filled("pyg-citation", "gat", "pubmed");
  EXPECT_EQ(gat.lr, 0.01);
  EXPECT_EQ(gat.weight_decay, 0.001);
  EXPECT_EQ(gat.heads * 10 + gat.out_heads, 88);
  EXPECT_EQ(gat.epochs, 1000);
  EXPECT_EQ(gat.stop_window, 100);
  EXPECT_EQ(gat.dropout, 0.6);
  EXPECT_EQ(filled("pyg-citation", "gat", "cora").lr, 0.005);
  EXPECT_EQ(filled("pyg-citation", "gat", "cora").out_heads, 1);
  const NodeOptions sgc = filled("pyg-citation", "sgc", "citeseer");
  EXPECT_EQ(sgc.features, "raw");
  EXPECT_EQ(sgc.lr, 0.1);
  EXPECT_EQ(sgc.weight_decay, 0.005);
  EXPECT_EQ(sgc.hops, 2);
  EXPECT_EQ(filled("pyg-citation", "sgc", "cora").hops, 3);
  EXPECT_EQ(filled("pyg-citation", "sgc", "cora").weight_decay, 5e-4);
  const NodeOptions appnp = filled("pyg-citation", "appnp", "cora");
  EXPECT_EQ(appnp.hidden, 64);
  EXPECT_EQ(appnp.hops, 10);
  EXPECT_EQ(appnp.alpha, 0.1);
}

/// Past half of the epochs, when the last loss is above the mean of the window before it.
TEST(node_models, the_window_ends_a_run) {
  NodeOptions o = filled("pyg-citation", "gcn", "cora");
  o.split = "0";
  o.epochs = 20;
  o.stop_window = 4;
  const apps::NodeTask task = apps::make_task(o, {.data = karate_club()});
  NodeDataset data = task.data;
  apps::NodeTask validated = task;
  validated.data.splits[0].valid = task.data.splits[0].test;
  apps::NodeRun run(o, validated, 0);
  const auto after = [&](const std::vector<double>& losses) {
    run.history = {};
    for (const double loss : losses) run.history.add(0, 0, loss, 0);
    run.epoch = int64_t(losses.size());
    return run.finished(o);
  };
  std::vector<double> falling;
  for (int i = 0; i < 10; ++i) falling.push_back(10 - i);
  falling.push_back(9);
  EXPECT_TRUE(after(falling)) << "above the mean of 4, 3, 2 and 1";
  falling.back() = 2.5;
  EXPECT_FALSE(after(falling)) << "at the mean";
  falling.back() = 2.6;
  EXPECT_TRUE(after(falling));
  falling.erase(falling.begin());
  EXPECT_FALSE(after(falling)) << "only past half of the epochs";
  EXPECT_TRUE(after(std::vector<double>(20, 1.0))) << "the last epoch";
  o.stop_window = 0;
  falling.insert(falling.begin(), 3, 10);
  EXPECT_FALSE(after(falling));
}

TEST(node_models, random_split_of_planetoid) {
  if (!have_shared_data("planetoid")) return;
  const TemporaryFolder folder;
  const Ended ended = run_program({kProgram, "--dataset", "cora", "--data", shared_data().string(), "--offline", "--recipe",
                                   "pyg-citation", "--split", "random", "--epochs", "1", "--json", folder / "r.json"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  EXPECT_NE(ended.output.find("140/500/1000 train/valid/test"), std::string::npos) << ended.output;
  EXPECT_EQ(json_of(folder / "r.json")["manifest"]["options"]["--split"], "random:20/500/1000");
}

/// A run that is killed and continued ends with the bits of one that was not, also where the window ended it.
TEST(node_models, every_model_resumes_with_the_same_bits) {
  for (const char* model :
       {"gcn", "gat", "sage", "gin", "sgc", "appnp", "gcn2", "deeper-gcn", "residual-gcn", "residual-sage"}) {
    SCOPED_TRACE(model);
    const TemporaryFolder folder;
    const auto train = [&](const std::string& epochs, const std::string& name, const std::vector<std::string>& more) {
      std::vector<std::string> all = {kProgram, "--model", model, "--epochs", epochs, "--json", folder / name};
      all.insert(all.end(), more.begin(), more.end());
      const Ended ended = run_program(all);
      EXPECT_EQ(ended.code, 0) << ended.errors;
      return json_of(folder / name)["result"]["weights_sha256"];
    };
    const auto whole = train("6", "whole", {});
    train("3", "half", {"--checkpoint", folder / "c"});
    EXPECT_EQ(train("6", "rest", {"--checkpoint", folder / "c", "--resume"}), whole);
    EXPECT_EQ(train("6", "two", {"--threads", "2"}), whole);
  }
}

}  // namespace
}  // namespace tessera::test
