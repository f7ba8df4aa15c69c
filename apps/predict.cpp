// tessera-predict: labels the nodes of a graph with a model that tessera-train-node (or PyTorch Geometric) trained.

#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "tessera/apps/support/node_run.h"
#include "tessera/apps/support/node_task.h"
#include "tessera/apps/support/outputs.h"
#include "tessera/apps/support/program.h"
#include "tessera/apps/support/result.h"
#include "tessera/apps/support/score.h"
#include "tessera/apps/support/weights.h"
#include "tessera/core/autograd.h"
#include "tessera/core/io/file.h"
#include "tessera/core/io/npy.h"
#include "tessera/core/ops/reduce.h"
#include "tessera/core/ops/softmax.h"
#include "tessera/core/parallel.h"
#include "tessera/core/version.h"
#include "tessera/datasets/graph/assemble.h"

using namespace tessera;
using namespace tessera::apps;

namespace {

struct PredictOptions : NodeOptions {
  std::string weights, out, format;
};

/// A field of a CSV row, in quotes where it needs them.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string name_of(const std::vector<std::string>& names, int64_t i) {
  return names.empty() ? to_text(i) : names[size_t(i)];
}

/// node, class, the probability of every class.
void write_csv(const std::string& path, const Tensor& probabilities, const NodeTask& task,
               const std::vector<std::string>& class_names) {
  const Tensor best = argmax_rows(probabilities);
  const int64_t n = probabilities.dim(0), classes = probabilities.dim(1);
  const float* p = probabilities.data<float>();
  write_atomically(path, [&](FileWriter& file) {
    std::string line = "node,class";
    for (int64_t c = 0; c < classes; ++c) line += "," + csv_field("p_" + name_of(class_names, c));
    file.write(line + "\n");
    for (int64_t i = 0; i < n; ++i) {
      line = csv_field(name_of(task.node_ids, i)) + "," + csv_field(name_of(class_names, best.data<int32_t>()[i]));
      for (int64_t c = 0; c < classes; ++c) line.append(",").append(to_text(double(p[i * classes + c])));
      file.write(line + "\n");
    }
  });
}

int predict(PredictOptions o, const std::string& command) {
  if (o.threads > 0) set_threads(o.threads);
  if (o.format.empty()) o.format = o.out.ends_with(".npy") ? "npy" : "csv";
  check_one_graph(o);
  std::vector<NamedPath> inputs = inputs_of(o);
  inputs.push_back({"--weights", o.weights});
  check_distinct({{"--out", o.out}, {"--json", o.json}}, inputs);
  check_output_file("--out", o.out);
  check_output_file("--json", o.json);

  if (!o.edges.empty()) o.dataset = o.edges;
  Weights weights = load_weights(o.weights);
  weights.fill_options(o);
  check<UsageError>(!o.dataset.empty(), "needs --dataset NAME, or --edges FILE and --nodes FILE");
  o.component = "all";  // what another component holds does not reach a node
  const NodeTask task = make_task(o, load_nodes(o));
  weights.check_fits(o, task);
  Generator random(0);
  // What the file lacks is listed when it is loaded, against a model for this data.
  const int64_t classes = weights.classes > 0 ? weights.classes : std::max<int64_t>(task.data.num_classes, 1);
  NodeModel model(o, task.data.num_features, classes, random);
  weights.load_into(model);

  const NoGrad off;
  eval(model);
  const Tensor logits = logits_of(model, task, random), probabilities = softmax(logits);
  check<IoError>(all_finite(logits) && all_finite(probabilities),
                 "{}: gives scores for {} that are not finite; the model does not suit this data", o.weights,
                 task.data.name);
  if (o.format == "npy")
    save_npy(o.out, probabilities);
  else
    write_csv(o.out, probabilities, task, weights.class_names);

  // Standard output may be where the predictions go.
  std::fprintf(stderr, "%s; predictions in %s\n", describe(task.data).c_str(), o.out.c_str());
  TrainingResult result{.metric = o.metric.empty() ? "accuracy" : o.metric};
  std::vector<int32_t> labelled;
  for (int64_t i = 0; i < task.data.num_nodes && task.data.num_classes > 0; ++i)
    if (task.data.labels.data<int32_t>()[i] >= 0) labelled.push_back(int32_t(i));
  if (!labelled.empty()) {
    result.test = {score_of(result.metric, logits, task.data.labels, ids(labelled))};
    std::fprintf(stderr, "%s %.2f %% over all %zu labelled nodes, those of training among them\n",
                 metric_title(result.metric).c_str(), 100 * result.test[0], labelled.size());
  }
  if (!o.json.empty())
    write_result(
        o.json,
        {.command = command, .recipe = o.recipe, .dataset = o.dataset, .data_sha256 = task.data.sha256, .device = o.device},
        result);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  PredictOptions o;
  o.dataset.clear();  // the weights say which
  o.model.clear();
  CLI::App app("Labels the nodes of a graph with a trained model.", "tessera-predict");
  app.add_option(
         "--weights", o.weights,
         "safetensors file of tessera-train-node's --save; or a state dict of the same model in PyTorch Geometric, as "
         "safetensors, .pth or .pt, with the options of the model as flags")
      ->type_name("FILE")
      ->required()
      ->group("Model");
  add_model_options(app, o);
  add_data_options(app, o);
  app.add_option("--out", o.out,
                 "file for the predictions; node, class and the probability of each class as CSV, or the "
                 "probabilities (nodes, classes) as .npy")
      ->type_name("FILE")
      ->required()
      ->group("Output");
  app.add_option("--format", o.format, "csv or npy, where the name of the file does not say")
      ->check(one_of({"csv", "npy"}))
      ->type_name("KIND")
      ->group("Output");
  app.add_option("--json", o.json, "file for the score over labelled nodes and how it was made")
      ->type_name("FILE")
      ->group("Output");
  add_machine_options(app, o);
  app.set_version_flag("--version", std::string("tessera ") + version());
  app.footer(
      "Examples:\n"
      "  tessera-predict --weights karate.safetensors --out karate.csv\n"
      "      After tessera-train-node --save karate.safetensors.\n"
      "  tessera-predict --weights own.safetensors --edges edges.csv --nodes nodes.csv --out own.csv\n"
      "      Your own graph; ids and classes are spelled as in its files.\n"
      "  tessera-predict --weights from_pyg.pt --model gat --hidden 8 --heads 8 --out-heads 1 --layers 2 --dataset cora "
      "--data DIR --features rows --out p.npy\n"
      "      A state dict of PyTorch, which says nothing of options: they are given here.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage.");
  return run_program(app, argc, argv, [&] { return predict(o, command_line(argc, argv)); });
}
