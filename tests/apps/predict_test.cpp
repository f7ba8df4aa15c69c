#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "tessera/core/io/npy.h"
#include "tessera/core/io/safetensors.h"
#include "tessera/core/ops/create.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/make_torch.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera::test {
namespace {

constexpr const char* kProgram = "tessera-predict";

struct Trained {
  TemporaryFolder folder;
  std::string weights = folder / "karate.safetensors";
  Trained() { EXPECT_EQ(run_program({"tessera-train-node", "--save", weights, "--json", folder / "train.json"}).code, 0); }
};

TEST(predict, gives_what_training_measured) {
  const Trained t;
  const Ended ended =
      run_program({kProgram, "--weights", t.weights, "--out", t.folder / "p.csv", "--json", t.folder / "p.json"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const auto train = json_of(t.folder / "train.json")["result"];
  const double all = (4 * train["train"]["mean"].get<double>() + 30 * train["test"]["mean"].get<double>()) / 34;
  EXPECT_NEAR(json_of(t.folder / "p.json")["result"]["test"]["mean"], all, 1e-12);
  std::istringstream lines(read_file(t.folder / "p.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "node,class,p_0,p_1,p_2,p_3");
  int nodes = 0;
  for (; std::getline(lines, line); ++nodes) {
    std::istringstream fields(line);
    std::string field;
    std::vector<double> values;
    while (std::getline(fields, field, ',')) values.push_back(std::stod(field));
    ASSERT_EQ(values.size(), 6u);
    EXPECT_EQ(values[0], nodes);
    EXPECT_NEAR(values[2] + values[3] + values[4] + values[5], 1, 1e-5);
    EXPECT_EQ(*std::max_element(values.begin() + 2, values.end()), values[2 + size_t(values[1])]);
  }
  EXPECT_EQ(nodes, 34);
}

TEST(predict, npy_and_standard_output) {
  const Trained t;
  ASSERT_EQ(run_program({kProgram, "--weights", t.weights, "--out", t.folder / "p.npy"}).code, 0);
  EXPECT_EQ(load_npy(t.folder / "p.npy").shape(), (Shape{34, 4}));
  const Ended ended = run_program({kProgram, "--weights", t.weights, "--out", "/dev/stdout"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(ended.output.starts_with("node,class,p_0")) << ended.output.substr(0, 40);
}

TEST(predict, a_state_dict_without_options_needs_flags) {
  const Trained t;
  const SafeTensors file = load_safetensors(t.weights);
  save_safetensors(t.folder / "plain", file.tensors);
  const std::string out = t.folder / "p.npy", plain = t.folder / "plain";
  const Ended refused = run_program({kProgram, "--weights", plain, "--out", out});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.errors, std::string(kProgram) + ": " + plain +
                                " says nothing of how the model was made; give --hidden, --layers (see --help)\n");
  ASSERT_EQ(run_program({kProgram, "--weights", plain, "--hidden", "16", "--layers", "2", "--features", "rows", "--dataset",
                         "karate", "--out", out})
                .code,
            0);
  const std::string by_flags = read_file(out);
  ASSERT_EQ(run_program({kProgram, "--weights", t.weights, "--out", out}).code, 0);
  EXPECT_EQ(read_file(out), by_flags);
}

TEST(predict, every_mismatch_in_one_line) {
  const Trained t;
  const std::string out = t.folder / "p.csv";
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& line) {
    arguments.insert(arguments.begin(), {kProgram, "--out", out});
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.code, code) << line;
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + line + "\n");
    EXPECT_FALSE(file_exists(out));
  };
  refused({}, 2, "--weights is required (see --help)");
  refused({"--weights", t.weights, "--hidden", "8", "--layers", "3", "--features", "raw"}, 2,
          t.weights +
              ": made with other options: --hidden 8 (the file: 16), --layers 3 (the file: 2), --features raw (the file: "
              "rows) (see --help)");
  put(t.folder / "e.csv", "a,b\nb,c\n");
  put(t.folder / "n.csv", "id,x,label\na,1,u\nb,2,v\nc,3,u\n");
  refused({"--weights", t.weights, "--edges", t.folder / "e.csv", "--nodes", t.folder / "n.csv"}, 1,
          t.weights + " does not fit " + t.folder / "e.csv" +
              ": the weights are for 34 features but the data has 1; the weights are for 4 classes but the data has 2");
  SafeTensors file = load_safetensors(t.weights);
  const std::string other = t.folder / "other";
  file.tensors.erase("convs.1.lin.weight");
  file.tensors["convs.0.bias"] = zeros(Shape{9});
  file.tensors["extra"] = zeros(Shape{1});
  save_safetensors(other, file.tensors);
  refused({"--weights", other, "--hidden", "16", "--layers", "2", "--dataset", "karate"}, 1,
          other +
              ": load_state_dict: convs.0.bias is f32 [9] but needs to be f32 [16]; missing convs.1.lin.weight [4, 16]; "
              "unexpected "
              "extra [1]");
  put(t.folder / "noise", "not a file of weights");
  EXPECT_EQ(run_program({kProgram, "--out", out, "--weights", t.folder / "noise"}).code, 1);
  refused({"--weights", t.folder / "none"}, 1, t.folder / "none" + ": cannot be opened: No such file or directory");
}

TEST(predict, what_is_not_finite_or_would_be_overwritten_is_refused) {
  const Trained t;
  const std::string out = t.folder / "p.csv", bad = t.folder / "bad";
  SafeTensors file = load_safetensors(t.weights);
  file.tensors["convs.1.bias"] = full(Shape{4}, std::numeric_limits<float>::infinity());
  save_safetensors(bad, file.tensors);
  Ended ended =
      run_program({kProgram, "--weights", bad, "--hidden", "16", "--layers", "2", "--dataset", "karate", "--out", out});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.errors,
            std::string(kProgram) + ": " + bad + ": convs.1.bias has values that are not finite; the training diverged\n");
  file.tensors["convs.1.bias"] = full(Shape{4}, 0.0F);
  file.tensors["convs.0.lin.weight"] = full(file.tensors.at("convs.0.lin.weight").shape(), 3e38F);
  file.tensors["convs.1.lin.weight"] = full(Shape{4, 16}, 3e38F);
  save_safetensors(bad, file.tensors);
  ended = run_program({kProgram, "--weights", bad, "--hidden", "16", "--layers", "2", "--dataset", "karate", "--out", out});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + bad +
                              ": gives scores for karate that are not finite; the model does not suit this data\n");
  EXPECT_FALSE(file_exists(out));
  const std::string before = read_file(t.weights);
  ended = run_program({kProgram, "--weights", t.weights, "--out", t.weights});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.errors,
            std::string(kProgram) + ": --out " + t.weights + ": would overwrite what --weights reads (see --help)\n");
  EXPECT_EQ(read_file(t.weights), before);
}

TEST(predict, names_of_the_users_files_and_unlabelled_nodes) {
  const TemporaryFolder folder;
  put(folder / "e.csv", "a,b\nb,\"c,1\"\n\"c,1\",a\nd,e\ne,f\nf,d\n");
  put(folder / "n.csv", "id,x,y,label\na,1,0,\"x, y\"\nb,1,0,\nd,0,1,z\n\"c,1\",1,0,\"x, y\"\ne,0,1,\nf,0,1,z\n");
  ASSERT_EQ(run_program({"tessera-train-node", "--edges", folder / "e.csv", "--nodes", folder / "n.csv", "--split",
                         "random:2/0", "--patience", "0", "--epochs", "200", "--save", folder / "w"})
                .code,
            0);
  const Ended ended = run_program({kProgram, "--weights", folder / "w", "--edges", folder / "e.csv", "--nodes",
                                   folder / "n.csv", "--out", folder / "p.csv"});
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const std::string text = read_file(folder / "p.csv");
  EXPECT_TRUE(text.starts_with("node,class,\"p_x, y\",p_z\na,\"x, y\",")) << text;
  EXPECT_NE(text.find("\nb,\"x, y\","), std::string::npos) << text;
  EXPECT_NE(text.find("\n\"c,1\",\"x, y\","), std::string::npos) << text;
  EXPECT_NE(text.find("\ne,z,"), std::string::npos) << text;
}

// The scores of every model are those that training measured, from our file and from a state dict of torch.save that says
// nothing of options.
TEST(predict, every_model_from_every_kind_of_file) {
  const TemporaryFolder folder;
  const std::string saved = folder / "w", torch = folder / "w.pt", json = folder / "r.json";
  const std::vector<std::pair<std::string, std::vector<std::string>>> models = {
      {"gcn", {"--hidden", "8", "--layers", "3", "--norm", "layer"}},
      {"gat", {"--hidden", "4", "--layers", "2", "--heads", "3", "--out-heads", "2"}},
      {"sage", {"--hidden", "8", "--layers", "2", "--norm", "batch"}},
      {"gin", {"--hidden", "8", "--layers", "2"}},
      {"sgc", {"--hops", "3"}},
      {"appnp", {"--hidden", "8", "--hops", "4", "--alpha", "0.2"}},
      {"gcn2", {"--hidden", "8", "--layers", "3", "--alpha", "0.2", "--theta", "1"}},
      {"deeper-gcn", {"--hidden", "8", "--layers", "2"}},
      {"residual-gcn", {"--hidden", "8", "--layers", "2"}},
      {"residual-sage", {"--hidden", "8", "--layers", "2"}},
  };
  for (const auto& [model, options] : models) {
    SCOPED_TRACE(model);
    std::vector<std::string> train = {
        "tessera-train-node", "--model", model, "--epochs", "5", "--save", saved, "--json", json};
    train.insert(train.end(), options.begin(), options.end());
    Ended ended = run_program(train);
    ASSERT_EQ(ended.code, 0) << ended.errors;
    const auto result = json_of(json)["result"];
    const double all = (4 * result["train"]["mean"].get<double>() + 30 * result["test"]["mean"].get<double>()) / 34;
    ended = run_program({kProgram, "--weights", saved, "--out", folder / "ours.npy", "--json", json});
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_NEAR(json_of(json)["result"]["test"]["mean"], all, 1e-12);

    std::map<std::string, Tensor> state = load_safetensors(saved).tensors;
    put(torch, torch_zip(state));
    std::vector<std::string> predict = {kProgram,     "--weights", torch,   "--model",           model,
                                        "--features", "rows",      "--out", folder / "torch.npy"};
    predict.insert(predict.end(), options.begin(), options.end());
    predict.insert(predict.end(), {"--dataset", "karate"});
    ended = run_program(predict);
    ASSERT_EQ(ended.code, 0) << ended.errors;
    EXPECT_EQ(read_file(folder / "torch.npy"), read_file(folder / "ours.npy"));

    state["zz"] = zeros(Shape{2});
    state.erase(state.begin());
    put(torch, torch_zip(state));
    ended = run_program(predict);
    EXPECT_EQ(ended.code, 1);
    EXPECT_NE(ended.errors.find("missing "), std::string::npos) << ended.errors;
    EXPECT_NE(ended.errors.find("unexpected zz [2]"), std::string::npos) << ended.errors;
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1);
  }
}

TEST(predict, options_that_a_file_lacks_or_a_model_does_not_have) {
  const TemporaryFolder folder;
  const std::string path = folder / "w.pt", out = folder / "p.csv";
  put(path, torch_zip({{"x", zeros(Shape{2})}}));
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& line) {
    arguments.insert(arguments.begin(), {kProgram, "--weights", path, "--out", out, "--dataset", "karate"});
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.code, code);
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + line + "\n");
  };
  refused({"--model", "gat", "--heads", "2"}, 2,
          path + " says nothing of how the model was made; give --hidden, --layers, --out-heads (see --help)");
  refused({"--model", "sgc"}, 2, path + " says nothing of how the model was made; give --hops (see --help)");
  refused({"--model", "sgc", "--hops", "2"}, 1,
          path + ": load_state_dict: missing conv1.lin.weight [4, 34]; missing conv1.lin.bias [4]; unexpected x [2]");
  refused({"--model", "sgc", "--hops", "2", "--hidden", "3"}, 2,
          "--hidden 3: the model sgc has no such option (see --help)");
}

}  // namespace
}  // namespace tessera::test
